//! Plugins in `settings.json`: ours, whose hooks make a second set needless, and the JavaScript originals', which ours
//! replaces. Ours and one of the originals share their name, so the installed hooks decide which one it is.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use crate::client::json_edit::Document;
use crate::env::Env;
use crate::store::file;

/// What is enabled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enabled {
    /// Whether our own plugin is.
    pub ours: bool,
    /// The originals' plugins, as `name@marketplace`.
    pub originals: Vec<String>,
}

/// Looks at the plugins that `settings` enables.
pub fn enabled(env: &Env, settings: &Document) -> Enabled {
    let mut enabled = Enabled::default();
    for id in settings.keys(&["enabledPlugins"]).unwrap_or_default() {
        let off = matches!(settings.value(&["enabledPlugins", &id]), None | Some(Value::Bool(false) | Value::Null));
        let name = id.split('@').next().unwrap_or_default();
        if off || !matches!(name, "session-intelligence" | "smartcompact") {
            continue;
        }
        let hooks = installed_hooks(env, &id);
        let runs = |script: &str| hooks.as_deref().is_some_and(|text| text.contains(script));
        if runs("si-bootstrap.js") || runs("pin-inject.js") || hooks.is_none() && id == "smartcompact@smartcompact" {
            enabled.originals.push(id);
        } else if name == "session-intelligence" {
            enabled.ours = true;
        }
    }
    enabled
}

/// Switches the originals' plugins off, the way the client does it.
pub fn disable(settings: &mut Document, ids: &[String]) -> Result<()> {
    for id in ids {
        settings.set(&["enabledPlugins", id], &json!(false))?;
    }
    Ok(())
}

/// The `hooks.json` of an installed plugin, as text.
fn installed_hooks(env: &Env, id: &str) -> Option<String> {
    let registry = file::read_user(&env.in_claude("plugins/installed_plugins.json")?, 4 << 20).ok()??;
    let registry: Value = serde_json::from_slice(&registry).ok()?;
    let record = &registry["plugins"][id];
    let record = record.get(0).unwrap_or(record);
    let folder = Path::new(record["installPath"].as_str()?);
    let hooks = file::read_user(&folder.join("hooks/hooks.json"), 1 << 20).ok()??;
    Some(String::from_utf8_lossy(&hooks).into_owned())
}
