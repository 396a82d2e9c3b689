//! `install.sh` and `uninstall.sh`, with a stand-in for cargo.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::Sandbox;

const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
const SI: &str = env!("CARGO_BIN_EXE_si");

/// A machine with a cargo that "builds" by copying, so that the scripts themselves are what is tested.
struct Machine {
    sandbox: Sandbox,
    bin: PathBuf,
    prefix: PathBuf,
}

impl Machine {
    fn new() -> Machine {
        let sandbox = Sandbox::new();
        let bin = sandbox.root().join("bin");
        let cargo = format!(
            "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --root ] && root=$2; shift; done\nmkdir -p \"$root/bin\" && cp '{SI}' \"$root/bin/si\"\n"
        );
        sandbox.write_program(&bin.join("cargo"), cargo);
        Machine { prefix: sandbox.home.join("opt/si 1"), bin, sandbox }
    }

    /// Runs a script with the stand-in; the exit code and all that was said.
    fn run(&self, name: &str, args: &[&str]) -> (i32, String) {
        self.run_with(name, args, &self.prefix, &format!("{}:/usr/bin:/bin", self.bin.display()))
    }

    fn run_with(&self, name: &str, args: &[&str], prefix: &Path, path: &str) -> (i32, String) {
        let mut command = Command::new(Path::new(REPOSITORY).join(name));
        command.args(args).env_clear().env("HOME", &self.sandbox.home).env("TMPDIR", &self.sandbox.tmp);
        command.env("PREFIX", prefix).env("PATH", path).current_dir(&self.sandbox.cwd);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code().unwrap(), said)
    }

    fn settings(&self) -> PathBuf {
        self.sandbox.home.join(".claude/settings.json")
    }
}

const FILES: [&str; 6] = [
    "bin/si",
    "share/bash-completion/completions/si",
    "share/zsh/site-functions/_si",
    "share/fish/vendor_completions.d/si.fish",
    "share/man/man1/si.1",
    "share/man/man1/si-pin.1",
];

#[test]
fn the_scripts_install_and_remove_everything() {
    let machine = Machine::new();
    let prefix = &machine.prefix;
    machine.sandbox.write(&prefix.join("share/man/man1/si-other.1"), "somebody else's");
    for round in 0..2 {
        let (code, said) = machine.run("install.sh", &["--no-claude-md"]);
        assert_eq!(code, 0, "{round}: {said}");
        for file in FILES {
            assert!(prefix.join(file).metadata().unwrap().len() > 100, "{file}");
        }
        assert_eq!(std::fs::read_dir(prefix.join("bin")).unwrap().count(), 1);
    }
    let settings = machine.sandbox.read(machine.settings());
    assert!(settings.contains("opt/si 1/bin/si' hook pre-compact"), "{settings}");
    for _ in 0..2 {
        let (code, said) = machine.run("uninstall.sh", &[]);
        assert_eq!(code, 0, "{said}");
        for file in FILES {
            assert!(!prefix.join(file).exists(), "{file}");
        }
    }
    assert!(!machine.sandbox.read(machine.settings()).contains("hooks"));
    // Without the program nobody can tell which files are si's.
    let state = machine.sandbox.home.join(".claude/.si-bootstrap-state");
    let (code, said) = machine.run("uninstall.sh", &["--purge"]);
    assert!(code == 1 && said.contains("--purge needs the program") && said.lines().count() == 1, "{said}");
    assert!(state.exists());
    assert_eq!(machine.run("install.sh", &[]).0, 0);
    assert_eq!(machine.run("uninstall.sh", &["--purge"]).0, 0);
    assert!(!state.exists() && !prefix.join("bin/si").exists());
    assert_eq!(std::fs::read_dir(prefix.join("share/man/man1")).unwrap().count(), 1, "what is not ours stays");
}

#[test]
fn a_dry_run_installs_nothing_and_shows_what_an_installation_would_write() {
    let machine = Machine::new();
    let (code, said) = machine.run("install.sh", &["--dry-run", "--no-statusline"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("opt/si 1/bin/si' hook pre-compact") && !said.contains("statusLine"), "{said}");
    assert!(!machine.prefix.exists() && !machine.settings().exists(), "{said}");
    assert_eq!(machine.run("install.sh", &["--no-statusline"]).0, 0);
    let installed = machine.sandbox.read(machine.settings());
    let shown: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix('+')).collect();
    assert!(installed.lines().all(|line| shown.contains(&line)), "{said}");
}

#[test]
fn an_option_that_is_none_is_refused_before_anything_is_built() {
    let machine = Machine::new();
    let (code, said) = machine.run("install.sh", &["--no-status-line"]);
    assert!(code == 64 && said.contains("--no-status-line is no option") && said.lines().count() == 1, "{said}");
    let (code, said) = machine.run("install.sh", &["--help"]);
    assert!(code == 0 && said.starts_with("Builds si") && said.contains("--no-claude-md"), "{said}");
    assert!(!machine.prefix.exists());
}

#[test]
fn what_is_missing_is_named_in_one_sentence_and_nothing_was_begun() {
    let machine = Machine::new();
    let bare = machine.sandbox.root().join("bare");
    for tool in ["dirname", "mkdir", "sh"] {
        std::fs::create_dir_all(&bare).unwrap();
        let found =
            ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool)).into_iter().find(|path| path.exists());
        symlink(found.unwrap(), bare.join(tool)).unwrap();
    }
    let run = |prefix: &Path| machine.run_with("install.sh", &[], prefix, bare.to_str().unwrap());
    let (code, said) = run(&machine.prefix);
    assert!(code == 1 && said.contains("cargo is missing") && said.lines().count() == 1, "{said}");
    symlink(machine.bin.join("cargo"), bare.join("cargo")).unwrap();
    let (code, said) = run(&machine.prefix);
    assert!(code == 1 && said.contains("C compiler") && said.lines().count() == 1, "{said}");
    symlink(machine.bin.join("cargo"), bare.join("cc")).unwrap();
    let (code, said) = run(Path::new("/proc/si"));
    assert!(code == 1 && said.contains("/proc/si/bin cannot be written") && said.lines().count() == 1, "{said}");
}
