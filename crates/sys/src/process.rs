//! Processes: start, end with the parent, namespaces.
