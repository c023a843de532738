//! Which stored episodes bound which threshold of the rules.
//!
//! Each threshold is moved by 30 %, and the whole corpus attributed again: the answers that change rest on its value.

use expect_test::expect;
use wakescope_core::explain::{Cause, Culprit, Phase, Share};

use super::tests::{documented, moved, thresholds};
use crate::{blame, blame_with};
use recorded::{Recorded, corpus};

#[path = "../../tests/recorded/mod.rs"]
mod recorded;

/// Who is mainly to blame: of the largest share, its cause, its part of the way and its culprit.
fn mainly(blame: &[Share]) -> Option<(Cause, Option<Phase>, &Culprit)> {
    blame.first().map(|share| (share.cause, share.phase, &share.culprit))
}

/// The episodes whose answers change with a threshold moved to so many percent of what it is.
fn changed(corpus: &[Recorded], name: &str, percent: u64) -> Vec<String> {
    let tuning = moved(&format!("{name}={percent}"));
    let mut changed = Vec::new();
    for recorded in corpus {
        for (number, (head, episode)) in (1..).zip(&recorded.episodes) {
            let was = blame(&episode.wakeup, &head.known);
            let is = blame_with(&tuning, &episode.wakeup, &head.known);
            let flipped =
                if mainly(&is) == mainly(&was) { "" } else { ": another one is mainly to blame" };
            if is != was {
                changed.push(format!("{}, episode {number}{flipped}", recorded.name()));
            }
        }
    }
    changed
}

#[test]
fn moved_thresholds_change_the_stored_answers_that_bound_them() {
    let corpus = corpus();
    assert_eq!(changed(&corpus, "tick_ns", 100), [""; 0], "nothing was moved");
    let mut all = String::new();
    for (name, _) in thresholds() {
        let [down, up] = [70, 130].map(|percent| changed(&corpus, name, percent));
        let counts = format!("{}, {}", down.len(), up.len());
        assert_eq!(documented(name)[5], counts, "docs/explain.md, {name}");
        // What is not listed changes none, as the page says with a 0.
        let moves = [(70, down), (130, up)].into_iter().filter(|(_, changed)| !changed.is_empty());
        for (percent, changed) in moves {
            all.push_str(&format!("{name} {percent} %\n  {}\n", changed.join("\n  ")));
        }
    }
    expect![[r#"
        return_path_ns 70 %
          amd64-6.1-none-file-move.jsonl, episode 1
          amd64-6.18-none-find-launch.jsonl, episode 3
          amd64-6.18-none-find-launch.jsonl, episode 4
          amd64-6.18-none-find-launch.jsonl, episode 9
          amd64-6.18-none-others.jsonl, episode 2
          amd64-6.18-none-others.jsonl, episode 3
          amd64-6.18-none-others.jsonl, episode 4
          amd64-6.18-none-softirq.jsonl, episode 1
          amd64-6.18-none-timers.jsonl, episode 2
        return_path_ns 130 %
          amd64-6.18-none-find-launch.jsonl, episode 3
          amd64-6.18-none-find-launch.jsonl, episode 4
          amd64-6.18-none-others.jsonl, episode 2
          amd64-6.18-none-others.jsonl, episode 3
          amd64-6.18-none-others.jsonl, episode 4
          amd64-6.18-none-softirq.jsonl, episode 1
          amd64-6.18-none-timers.jsonl, episode 2
        to_ksoftirqd_ns 70 %
          amd64-6.12-none-launch.jsonl, episode 1
          amd64-6.12-none-launch.jsonl, episode 2
        to_ksoftirqd_ns 130 %
          amd64-6.12-none-launch.jsonl, episode 1
          amd64-6.12-none-launch.jsonl, episode 2
        way_out_percent 70 %
          amd64-6.1-none-find-way.jsonl, episode 1
          amd64-6.1-none-find-way.jsonl, episode 2
          amd64-6.12-full-overlapping.jsonl, episode 1
          amd64-6.12-none-launch.jsonl, episode 1
          amd64-6.12-none-launch.jsonl, episode 2
          amd64-7.2-full-find.jsonl, episode 1
          amd64-7.2-full-find.jsonl, episode 2
        way_out_percent 130 %
          amd64-6.1-none-find-way.jsonl, episode 1
          amd64-6.1-none-find-way.jsonl, episode 2
          amd64-6.12-full-overlapping.jsonl, episode 1
          amd64-6.12-none-launch.jsonl, episode 1
          amd64-6.12-none-launch.jsonl, episode 2
          amd64-7.2-full-find.jsonl, episode 1
        slow_handler_ns 130 %
          amd64-6.18-none-find-launch.jsonl, episode 4: another one is mainly to blame
        scheduling_percent 70 %
          amd64-6.18-none-find-launch.jsonl, episode 3
        scheduling_percent 130 %
          amd64-6.18-none-find-launch.jsonl, episode 3
    "#]]
    .assert_eq(&all);
}
