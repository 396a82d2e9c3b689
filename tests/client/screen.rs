//! The client as a person sees it: interactive, in a terminal of a given width (tmux).

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{API_KEY, World};

const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: &str = "45";

/// A running client in a terminal of its own.
pub struct Screen<'w> {
    world: &'w World,
    socket: String,
}

/// Whether tmux is there.
pub fn available() -> bool {
    Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success())
}

impl<'w> Screen<'w> {
    /// Starts the client with a first prompt; what it asks at a first start is answered beforehand.
    pub fn open(world: &'w World, columns: usize, prompt: &str) -> Screen<'w> {
        let known = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [&API_KEY[API_KEY.len() - 20..]], "rejected": []},
            "projects": {world.cwd.to_str().unwrap(): {"hasTrustDialogAccepted": true}},
        });
        world.write(&world.home.join(".claude.json"), &known.to_string());
        let path = world.claude("settings.json");
        let mut settings: Value =
            std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(json!({}));
        settings["skipDangerousModePermissionPrompt"] = json!(true);
        world.write(&path, &format!("{settings:#}"));
        let screen = Screen { world, socket: world.root().join("tmux").to_str().unwrap().to_owned() };
        let columns = columns.to_string();
        let program = world.client.program.to_str().unwrap();
        let arguments =
            ["new-session", "-d", "-x", &columns, "-y", ROWS, program, "--dangerously-skip-permissions", prompt];
        screen.tmux(&arguments);
        screen
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = self.world.command("tmux".as_ref());
        let output = command.args(["-S", &self.socket, "-f", "/dev/null", "-u"]).args(args).output().unwrap();
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types a line and sends it.
    pub fn type_in(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        // The client completes slash commands as they are typed: what it offers must stand before it is taken.
        std::thread::sleep(Duration::from_millis(800));
        self.tmux(&["send-keys", "Enter"]);
    }

    /// What is on the screen, without colours.
    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// What is on the screen, with colours.
    pub fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until the screen has what is wanted and stands still.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        let mut last = String::new();
        while begun.elapsed() < PATIENCE {
            let text = self.text();
            if text == last && wanted(&text) {
                return text;
            }
            last = text;
            std::thread::sleep(Duration::from_millis(500));
        }
        panic!("{what} did not come to the screen:\n{last}")
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        // This server is ours alone: it has a socket of its own.
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output();
    }
}
