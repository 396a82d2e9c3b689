//! Roles and how they look: the only place that knows colour codes.
//!
//! One colour, one signal: everything is dim but what warns (the zone, quota steps, cache tiers, an old compaction,
//! health dots). Separators are nearly invisible.

use crate::watch::zones::Zone;

/// What a piece of text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// As the terminal has it.
    Plain,
    /// Reference, not warning.
    Dim,
    /// All well.
    Green,
    /// Look.
    Yellow,
    /// Act soon.
    Orange,
    /// Act now.
    Red,
    /// All well, quietly.
    DimGreen,
    /// Look, quietly.
    DimYellow,
    /// Act, quietly.
    DimRed,
    /// Not known yet.
    Grey,
    /// Between cells.
    Separator,
}

impl Role {
    /// The role of a zone.
    pub fn of(zone: Zone) -> Role {
        match zone {
            Zone::Green => Role::Green,
            Zone::Yellow => Role::Yellow,
            Zone::Orange => Role::Orange,
            Zone::Red => Role::Red,
        }
    }

    /// Parameters of the SGR sequence; none for [`Role::Plain`].
    fn sgr(self) -> Option<&'static str> {
        Some(match self {
            Role::Plain => return None,
            Role::Dim => "2",
            Role::Green => "32",
            Role::Yellow => "33",
            Role::Orange => "38;5;208",
            Role::Red => "31",
            Role::DimGreen => "2;32",
            Role::DimYellow => "2;33",
            Role::DimRed => "2;31",
            Role::Grey => "90",
            Role::Separator => "38;5;237",
        })
    }
}

/// Appends `text` to `out`, coloured if `colors`.
pub fn paint(out: &mut String, role: Role, text: &str, colors: bool) {
    match role.sgr().filter(|_| colors && !text.is_empty()) {
        Some(sgr) => {
            out.push_str("\x1b[");
            out.push_str(sgr);
            out.push('m');
            out.push_str(text);
            out.push_str("\x1b[0m");
        }
        None => out.push_str(text),
    }
}
