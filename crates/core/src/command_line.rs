//! The kernel's command line as a record holds it: without what may be secret.

mod harmless;

use harmless::{FAMILIES, KEYS};

/// Stands for what is left out.
pub(crate) const MASKED: &str = "[masked]";

/// The longest name of a parameter that is kept, in bytes. The kernel's own stay below 40.
const LONGEST_KEY: usize = 48;

/// What init gets, and the kernel does not read, comes after this.
const END: &str = "--";

/// The command line with only those values that are known to be harmless: of parameters that matter
/// for latency, all of which have numbers, CPU lists or a fixed set of words.
///
/// Another parameter keeps its name: `root=[masked]`. Of a word that has no form of a parameter
/// nothing is kept, nor of the arguments for init: either may be a token.
pub fn masked(text: &str) -> String {
    masked_by(text, |key| format!("{key}={MASKED}"))
}

/// The same without the names of other parameters, which may tell whose machine it is.
pub(crate) fn anonymous(text: &str) -> String {
    masked_by(text, |_| MASKED.into())
}

fn masked_by(text: &str, of_unknown: impl Fn(&str) -> String) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut arguments = arguments(text);
    for argument in arguments.by_ref() {
        if argument == END {
            shown.push(END.into());
            break;
        }
        shown.push(parameter(argument, &of_unknown));
    }
    // Also how many there are for init is nobody's business.
    if arguments.next().is_some() {
        shown.push(MASKED.into());
    }
    shown.join(" ")
}

/// One parameter, as it may be shown.
fn parameter(argument: &str, of_unknown: &impl Fn(&str) -> String) -> String {
    // The kernel takes `"key=a b"` for `key="a b"`.
    let bare = argument.trim_matches('"');
    match bare.split_once('=') {
        None if is_harmless(bare) => argument.into(),
        Some((key, _)) if is_harmless(key) => argument.into(),
        // The end of a token in base 64 looks like a parameter with an empty value.
        Some((key, value)) if is_key(key) && !value.trim_matches('=').is_empty() => of_unknown(key),
        _ => MASKED.into(),
    }
}

/// Whether `key` has the form of a parameter's name.
fn is_key(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    key.len() <= LONGEST_KEY
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(is_part)
}

/// Whether the values of the parameter `key` are known to be harmless.
fn is_harmless(key: &str) -> bool {
    // The kernel takes the one for the other (parameq(), kernel/params.c).
    let key = key.replace('-', "_");
    let family = key.split_once('.').map(|(family, _)| family);
    KEYS.contains(&key.as_str())
        || (is_key(&key) && family.is_some_and(|family| FAMILIES.contains(&family)))
}

/// The arguments of a command line, as the kernel divides it: at blanks that are in no quotation
/// marks. These cannot be escaped, and the last may be missing (`next_arg()`, lib/cmdline.c).
fn arguments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let mut is_quoted = false;
        let end = rest.find(|c: char| {
            is_quoted ^= c == '"';
            c.is_whitespace() && !is_quoted
        });
        let (argument, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!argument.is_empty()).then_some(argument)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_harmless_values_are_kept() {
        for (text, want) in [
            ("", ""),
            ("ro quiet isolcpus=3 nohz_full=3\n", "ro quiet isolcpus=3 nohz_full=3"),
            (
                "BOOT_IMAGE=/boot/vmlinuz-6.12 root=UUID=5f-a ro preempt=full",
                "BOOT_IMAGE=[masked] root=[masked] ro preempt=full",
            ),
            ("isolcpus=managed_irq,domain,2-3", "isolcpus=managed_irq,domain,2-3"),
            (
                "processor.max_cstate=1 rcutree.kthread_prio=80",
                "processor.max_cstate=1 rcutree.kthread_prio=80",
            ),
            // The kernel does not tell `-` from `_`.
            ("nohz-full=3 kvm-intel.nested=1", "nohz-full=3 kvm-intel.nested=1"),
            ("netconsole=6665@10.0.0.1/eth0", "netconsole=[masked]"),
            ("systemd.setenv=TOKEN=abc", "systemd.setenv=[masked]"),
            // Words may be tokens, also such as end in `=`.
            ("ghp_16C7e42F292c6912E7", "[masked]"),
            ("c2VjcmV0IQ==", "[masked]"),
            ("c2VjcmV0IQ=", "[masked]"),
            ("https://host/?token=abc", "[masked]"),
            ("=abc", "[masked]"),
            ("quiet -- lab-guest --results ttyS1", "quiet -- [masked]"),
            ("quiet --", "quiet --"),
            // What is quoted is one argument.
            ("dyndbg=\"file a.c +p quiet\" ro", "dyndbg=[masked] ro"),
            ("\"secret=a quiet\" ro", "secret=[masked] ro"),
            ("secret=\"a b quiet", "secret=[masked]"),
            ("preempt=\"full\"", "preempt=\"full\""),
            ("\"my quiet -- secret\"", "[masked]"),
        ] {
            let got = masked(text);
            assert_eq!(got, want, "{text}");
            assert_eq!(masked(&got), got, "masking twice changes nothing");
        }
    }

    #[test]
    fn names_of_other_parameters_can_be_left_out() {
        let text = "acme.site=berlin preempt=full word -- init";
        assert_eq!(anonymous(text), "[masked] preempt=full [masked] -- [masked]");
        assert_eq!(anonymous(&masked(text)), anonymous(text));
    }

    #[test]
    fn the_lists_of_harmless_parameters_are_in_order_and_written_alike() {
        for list in [KEYS, FAMILIES] {
            assert!(list.windows(2).all(|two| two[0] < two[1]), "sort them");
            assert!(list.iter().all(|key| is_key(key) && !key.contains('-')));
        }
        let in_a_family = |key: &&&str| {
            key.split('.').next().is_some_and(|f| f != **key && FAMILIES.contains(&f))
        };
        assert_eq!(KEYS.iter().find(in_a_family), None, "its whole family is on the list");
    }

    proptest! {
        #[test]
        fn no_secret_gets_through(
            // Within quotation marks that follow a harmless key, it is that key's value.
            before in "([a-z_.]{1,9}(=[a-z0-9,]{0,5})? ){0,4}",
            key in "(secret|root|x\\.y|)",
            after in "( [a-z_.\"-]{1,9}(=[a-z0-9,]{0,5})?){0,4}",
        ) {
            let secret = "S3CR3T";
            let text = match key.as_str() {
                "" => format!("{before}{secret}{after}"),
                key => format!("{before}{key}={secret}{after}"),
            };
            let got = masked(&text);
            prop_assert!(!got.contains(secret), "{} -> {}", text, got);
            prop_assert_eq!(masked(&got), got);
        }
    }
}
