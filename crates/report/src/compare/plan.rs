//! The order in which to measure two sides, as a shell script.

use wakescope_core::units::counted;
use wakescope_stats::compare::Side;

/// A script that measures two sides in this `order`, which was drawn with `seed`, and compares them.
pub fn plan(order: &[Side], seed: u64) -> String {
    let runs = order.len() / 2;
    let mut out = format!(
        "#!/bin/sh
# Measures {} a side in turns, and compares them.
# Made by: wakescope compare --interleave-plan {runs} --seed {seed}
#
# Usage: SET_UP_OLD='COMMAND' SET_UP_NEW='COMMAND' sh plan.sh --duration 1min --load find
#
# Arguments go to each `wakescope measure`. The commands put the machine in the state of a side. If
# that takes a boot, run the steps by hand, one after each boot, in this order.
set -eu
command -v wakescope >/dev/null || {{
    echo \"$0: there is no wakescope in PATH; add its folder to PATH\" >&2
    exit 2
}}
: \"${{SET_UP_OLD:?is not set: the command that puts the machine in its old state}}\"
: \"${{SET_UP_NEW:?is not set: the command that puts the machine in its new state}}\"
step() {{ # NUMBER SET_UP FOLDER OPTIONS…
    echo \"step $1 of {}: $3\" >&2
    eval \"$2\"
    folder=$3
    shift 3
    status=0
    wakescope measure \"$@\" --out \"$folder\" || status=$?
    # A limit that was exceeded (1) or is not decided (3) is a result as well.
    case $status in
    0 | 1 | 3) ;;
    *) exit \"$status\" ;;
    esac
}}

",
        counted(runs as u64, "run"),
        order.len()
    );
    let (mut new, mut old) = (0, 0);
    for (step, side) in (1..).zip(order) {
        let (name, count) = match side {
            Side::New => ("new", &mut new),
            Side::Old => ("old", &mut old),
        };
        *count += 1;
        let set_up = name.to_uppercase();
        out.push_str(&format!("step {step} \"$SET_UP_{set_up}\" {name}/{count} \"$@\"\n"));
    }
    let folders =
        |side: &str| (1..=runs).map(|run| format!("{side}/{run}")).collect::<Vec<_>>().join(" ");
    let last = if order.last() == Some(&Side::New) { "new" } else { "old" };
    out + &format!(
        "\necho \"the machine is left in its {last} state\" >&2\nwakescope compare {} --against {}\n",
        folders("new"),
        folders("old")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use wakescope_stats::compare::interleaved;

    #[test]
    fn a_plan_is_a_script() {
        let text = plan(&interleaved(3, 7), 7);
        let steps: String = text.lines().skip(14).map(|line| format!("{line}\n")).collect();
        expect![[r#"
            : "${SET_UP_NEW:?is not set: the command that puts the machine in its new state}"
            step() { # NUMBER SET_UP FOLDER OPTIONS…
                echo "step $1 of 6: $3" >&2
                eval "$2"
                folder=$3
                shift 3
                status=0
                wakescope measure "$@" --out "$folder" || status=$?
                # A limit that was exceeded (1) or is not decided (3) is a result as well.
                case $status in
                0 | 1 | 3) ;;
                *) exit "$status" ;;
                esac
            }

            step 1 "$SET_UP_OLD" old/1 "$@"
            step 2 "$SET_UP_NEW" new/1 "$@"
            step 3 "$SET_UP_NEW" new/2 "$@"
            step 4 "$SET_UP_OLD" old/2 "$@"
            step 5 "$SET_UP_OLD" old/3 "$@"
            step 6 "$SET_UP_NEW" new/3 "$@"

            echo "the machine is left in its new state" >&2
            wakescope compare new/1 new/2 new/3 --against old/1 old/2 old/3
        "#]]
        .assert_eq(&steps);
        assert!(text.contains("# Made by: wakescope compare --interleave-plan 3 --seed 7\n"));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
