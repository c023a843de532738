//! The same done to many things, on all CPUs.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

use crate::Failure;

/// The most threads: each may hold an input of [`SMALL`](wakescope_core::budget::SMALL) bytes and what
/// is made of it, and all of them together are to stay small beside the budget of one input.
const MOST: usize = 8;

/// What `of` makes of each item, in the order of the items.
///
/// # Errors
/// The first, in the order of the items. After an error no other item is begun.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    of: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut done = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { break };
            let made = of(item);
            if made.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
            done.push((place, made));
        }
        done
    };
    let threads = available_parallelism().map_or(1, usize::from).min(MOST).min(items.len());
    let mut all = scope(|scope| {
        // Where no thread can be had, the others do its work.
        let started = (1..threads).map_while(|_| Builder::new().spawn_scoped(scope, work).ok());
        let others: Vec<_> = started.collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    });
    // Items are begun in their order: all before the first error are there.
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        let items: Vec<usize> = (0..1_000).collect();
        let doubled = each(&items, |item| Ok(2 * item)).unwrap();
        assert!(doubled.iter().zip(&items).all(|(double, item)| *double == 2 * item));
        assert_eq!(doubled.len(), items.len());
        assert!(each(&items[..0], |item| Ok(*item)).unwrap().is_empty());
    }

    #[test]
    fn the_error_is_the_first_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1_000).collect();
        for _ in 0..50 {
            let e = each(&items, |&item| match item % 100 {
                17.. => Err::<(), _>(Failure::new(format!("item {item}"))),
                _ => Ok(()),
            });
            assert!(e.unwrap_err().to_string().contains("item 17"));
        }
    }
}
