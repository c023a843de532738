//! Which form a reader takes: the header `Accept` of HTTP.

use crate::export::prometheus::Format;

/// A form of the families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text, with classic histograms.
    Text(Format),
    /// Messages of `io.prometheus.client`, with native histograms beside the classic ones.
    Protobuf,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 3] =
        [Self::Text(Format::Prometheus), Self::Text(Format::OpenMetrics), Self::Protobuf];

    /// The one that a reader wants most; Prometheus' text if it wants none of them.
    pub fn accepted(header: &str) -> Self {
        let mut best: Option<(f64, Self)> = None;
        for range in header.split(',') {
            let Some((weight, form)) = wanted(range) else { continue };
            if weight > 0.0 && best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, form));
            }
        }
        best.map_or(Self::Text(Format::Prometheus), |(_, form)| form)
    }

    /// Its name as the type of a content.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text(Format::Prometheus) => "text/plain; version=0.0.4; charset=utf-8",
            Self::Text(Format::OpenMetrics) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

/// How much a reader wants one form, from 0 to 1; `None` if it is none of ours.
fn wanted(range: &str) -> Option<(f64, Form)> {
    let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
    let kind = parts.next()?;
    let mut weight = 1.0;
    let mut said = Vec::new();
    for part in parts {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (name.trim().to_owned(), value.trim().trim_matches('"').to_owned());
        match name.as_str() {
            "q" => weight = value.parse().ok().filter(|q| (0.0..=1.0).contains(q))?,
            _ => said.push((name, value)),
        }
    }
    let says = |name: &str| said.iter().find(|said| said.0 == name).map(|said| said.1.as_str());
    let form = match kind.as_str() {
        "application/vnd.google.protobuf" => {
            let is_it = says("proto") == Some("io.prometheus.client.metricfamily")
                && says("encoding") == Some("delimited");
            is_it.then_some(Form::Protobuf)?
        }
        "application/openmetrics-text" => match says("version") {
            None | Some("1.0.0") => Form::Text(Format::OpenMetrics),
            Some(_) => return None,
        },
        "text/plain" | "text/*" | "*/*" => Form::Text(Format::Prometheus),
        _ => return None,
    };
    Some((weight, form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_what_it_wants_most() {
        let (text, open) = (Form::Text(Format::Prometheus), Form::Text(Format::OpenMetrics));
        for (header, want) in [
            ("", text),
            ("*/*", text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", text),
            ("application/openmetrics-text; version=1.0.0", open),
            ("application/openmetrics-text; version=9.0.0", text),
            ("application/openmetrics-text;q=0,text/plain;q=0.1", text),
            ("text/plain;q=0.3, application/openmetrics-text;version=\"1.0.0\";q=0.4", open),
            ("text/plain;q=2,application/openmetrics-text;q=0.1", open),
            // Prometheus 2.42 without and with native histograms.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                 version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                open,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                 encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,\
                 application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,\
                 */*;q=0.1",
                Form::Protobuf,
            ),
            ("application/vnd.google.protobuf;proto=other;encoding=delimited", text),
            ("application/vnd.google.protobuf", text),
            (";;=,,q=q;q", text),
        ] {
            assert_eq!(Form::accepted(header), want, "{header}");
        }
    }
}
