use std::os::fd::AsFd;
use std::path::Path;

use super::*;
use crate::file::effective_user;
use crate::landlock::{self, Forbidden};
use crate::process::{Exit, OPEN_FILES, raise_open_files};

/// A user that nobody is.
const STRANGER: u32 = 1_500_000_000;

struct Case<'a> {
    namespaces: &'a [Namespace],
    user: Option<u32>,
    rules: Option<Rules>,
}

impl Case<'_> {
    /// What `script` prints, with how it ends. It inherits /dev/null and a pipe.
    fn run(&self, script: &str) -> Result<(String, Exit), Refused> {
        let nothing = File::open("/dev/null").unwrap();
        let (mut output, writer) = pipe().unwrap();
        let program = Program::new(Path::new("/bin/sh"), ["-c", script]).unwrap();
        let folder = File::open("/").unwrap();
        let confined = Confined {
            program: &program,
            stdio: [nothing.as_fd(), writer.as_fd(), writer.as_fd()],
            inherited: &[nothing.as_fd(), writer.as_fd()],
            folder: &folder,
            namespaces: self.namespaces,
            user: self.user,
            rules: self.rules.as_ref(),
            file_size: 1 << 20,
        };
        let child = confined.run()?;
        drop(writer);
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        Ok((text, child.wait()))
    }
}

const PLAIN: Case<'_> = Case { namespaces: &[], user: None, rules: None };

#[test]
fn a_confined_program_has_what_it_was_given_and_no_more() {
    // Open without "close on exec", as a shell's redirections are.
    let extra = File::open("/dev/zero").unwrap();
    // SAFETY: flags of a descriptor that is open.
    unsafe { libc::fcntl(extra.as_raw_fd(), libc::F_SETFD, 0) };
    let script = "readlink /proc/self/cwd; cd /proc/self; echo $PATH_OF_NOTHING$HOME; exec sh -c \
                  'for n in fd/*; do [ -e $n ] && echo -n \"$n \"; done; echo; \
                  ulimit -c; ulimit -f; ulimit -n; grep -e NoNewPrivs -e CapEff -e CapPrm /proc/self/status'";
    raise_open_files().unwrap();
    let open_files = OPEN_FILES.get().unwrap().rlim_cur.to_string();
    let (text, exit) = PLAIN.run(script).unwrap();
    assert_eq!(exit, Exit::Status(0), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["/", ""], "{text}");
    // The shell has the folder open that it lists.
    assert!(lines[2].starts_with("fd/0 fd/1 fd/2 fd/3 fd/4 "), "{text}");
    assert!(lines[2].split_whitespace().count() <= 6, "{text}");
    assert_eq!(lines[3..6], ["0", "2048", &open_files], "{text}");
    for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(lines.contains(&line), "{line} is not in {text}");
    }
    drop(extra);
}

#[test]
fn a_confined_program_is_another_user_in_namespaces_of_its_own() {
    let name = "a_confined_program_is_another_user_in_namespaces_of_its_own";
    if effective_user() != 0 {
        return wakescope_testing::skip(name, "becoming another user needs root");
    }
    let namespaces = [Namespace::Network, Namespace::Ipc];
    let case = Case { namespaces: &namespaces, user: Some(STRANGER), rules: None };
    let script = "grep -e Uid -e Gid -e Groups -e CapEff /proc/self/status; \
                  readlink /proc/self/ns/net /proc/self/ns/ipc; id -u";
    let (text, _) = match case.run(script) {
        Err(Refused { step: Step::Namespace(_) | Step::User, source }) => {
            return wakescope_testing::skip(name, &source.to_string());
        }
        other => other.unwrap(),
    };
    let four = [STRANGER; 4].map(|user| user.to_string()).join("\t");
    assert!(text.contains(&format!("Uid:\t{four}\n")), "{text}");
    assert!(text.contains(&format!("Gid:\t{four}\n")), "{text}");
    assert!(text.contains("Groups:\t \n") || text.contains("Groups:\t\n"), "{text}");
    assert!(text.contains("CapEff:\t0000000000000000\n"), "{text}");
    for kind in ["net", "ipc"] {
        let own = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        assert!(!text.contains(own.to_str().unwrap()), "{kind}: {text}");
        assert!(text.contains(&format!("{kind}:[")), "{kind}: {text}");
    }
}

#[test]
fn a_step_that_is_refused_is_named_and_nothing_runs() {
    let case = Case { user: Some(u32::MAX), ..PLAIN };
    let refused = case.run("echo ran").unwrap_err();
    assert_eq!(refused.step, Step::User, "{refused:?}");

    let folder = File::open("/").unwrap();
    let program = Program::new(Path::new("/does/not/exist"), ["x"]).unwrap();
    let nothing = File::open("/dev/null").unwrap();
    let stdio = [nothing.as_fd(); 3];
    let namespaces = &[];
    let (user, rules, file_size) = (None, None, 0);
    let inherited = &[][..];
    let confined = Confined {
        program: &program,
        stdio,
        inherited,
        folder: &folder,
        namespaces,
        user,
        rules,
        file_size,
    };
    let refused = confined.run().unwrap_err();
    assert_eq!(refused.step, Step::Execute, "{refused:?}");
    assert_eq!(refused.source.kind(), io::ErrorKind::NotFound);
    for place in 0..3 {
        assert_eq!(step_of(number_of(Step::Namespace(place))), Step::Namespace(place));
    }
    for step in [Step::Process, Step::User, Step::Privileges, Step::Rules, Step::Execute] {
        assert_eq!(step_of(number_of(step)), step);
    }
}

#[test]
fn rules_forbid_what_they_do_not_allow() {
    let name = "rules_forbid_what_they_do_not_allow";
    if landlock::version().is_err() {
        return wakescope_testing::skip(name, "there is no Landlock");
    }
    let files = landlock::WRITE_FILE | landlock::CHANGE_FOLDER | landlock::READ_FILE;
    let rules = Rules::new(&Forbidden { files, ..Forbidden::default() }).unwrap();
    rules.allow(&File::open("/dev/null").unwrap(), landlock::WRITE_FILE).unwrap();
    for folder in ["/bin", "/usr", "/lib", "/lib64", "/etc", "/proc"] {
        if let Ok(folder) = File::open(folder) {
            rules.allow(&folder, landlock::READ_FILE).unwrap();
        }
    }
    let folder = wakescope_testing::Folder::new("rules");
    let place = folder.write("place", "treasure");
    let path = place.display();
    let case = Case { rules: Some(rules), ..PLAIN };
    let script = format!(
        "echo x >/dev/null && echo null; echo x >{path}; echo x >{path}-new; cat {path}; rm {path}; \
         echo inherited >&4; head -c 6 /proc/self/status"
    );
    let (text, _) = case.run(&script).unwrap();
    assert!(text.contains("null\n") && text.contains("inherited\n"), "{text}");
    assert!(text.contains("Name:\t") && !text.contains("treasure"), "{text}");
    assert!(text.matches("Permission denied").count() >= 3, "{text}");
    assert_eq!(std::fs::read_to_string(&place).unwrap(), "treasure");
    assert!(!folder.join("place-new").exists());
}
