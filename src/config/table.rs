//! What a row of the table of keys is: how a value is read, checked, shown and described.
//!
//! [`keys!`] turns the rows of `keys.rs` into the typed structs and into [`Key`]s, from which loading, `si explain`, the
//! form, the JSON schema and the README's table are made. Adding a key is adding a row.

use serde_json::{Map, Number, Value};

use super::Config;
use crate::client::json::Raw;

/// One configuration key.
#[derive(Debug)]
pub struct Key {
    /// Where it stands in the file: `statusline.zones.red`.
    pub path: &'static str,
    /// What the form calls it.
    pub label: &'static str,
    /// What it does, in one or two sentences.
    pub help: &'static str,
    /// How its values look.
    pub spec: Spec,
    /// Puts a value into its field; false when the value cannot be used.
    pub(super) load: fn(&mut Config, Raw<'_>, &Spec) -> bool,
    /// The value in force, as JSON; none for an optional key that is not set.
    pub value: fn(&Config) -> Option<Value>,
}

impl Key {
    /// The section of the file that it stands in: `statusline`.
    pub fn section(&self) -> &'static str {
        self.path.split('.').next().unwrap_or_default()
    }

    /// The built-in value; none for an optional key.
    pub fn default_value(&self) -> Option<Value> {
        (self.value)(&Config::built_in())
    }
}

/// How the values of a key look.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Type and range.
    pub kind: Kind,
    /// Whether a number out of range in the file is moved to the nearest end instead of ignored, and a list in the file
    /// loses what is no text instead of being ignored.
    pub clamp: bool,
    /// Variables that set it; later ones win.
    pub vars: &'static [Var],
    /// Whether the form of `si config` shows it; lists and blocks are too free for one line.
    pub in_form: bool,
    /// What stands in the form for "not set", for a key without a built-in value.
    pub unset: Option<&'static str>,
    /// When a change is seen.
    pub effect: Effect,
    /// The value, as JSON text, that the JavaScript original's template wrote into every user's file: it counts as not
    /// set, since nobody chose it.
    pub template: Option<&'static str>,
}

/// Type and range of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number, both ends included.
    Count(u64, u64),
    /// A number, both ends included.
    Number(f64, f64),
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of texts.
    List,
    /// A list of services to probe.
    Services,
    /// Settings by project folder.
    Projects,
}

/// When a change is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// On the next redraw, tool call or prompt.
    Now,
    /// When the next session starts.
    NextSession,
}

/// A variable that sets a key.
#[derive(Debug, Clone, Copy)]
pub struct Var {
    /// Its name.
    pub name: &'static str,
    /// What it may hold.
    pub accepts: Accepts,
}

/// What a variable may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// A value of the key, as `si set` takes it.
    Value,
    /// A list, separated by commas.
    Commas,
    /// The name of a preset: its fields.
    Preset,
    /// `0` for false and `1` for true.
    ZeroOne,
    /// `0` for false alone.
    Zero,
    /// `1` for true alone.
    One,
    /// Anything but nothing and `0`: false.
    TurnsOff,
    /// Anything but nothing: false.
    AnythingTurnsOff,
}

const fn spec(kind: Kind) -> Spec {
    Spec { kind, clamp: false, vars: &[], in_form: true, unset: None, effect: Effect::Now, template: None }
}

pub(super) const fn switch() -> Spec {
    spec(Kind::Switch)
}

pub(super) const fn count(min: u64, max: u64) -> Spec {
    spec(Kind::Count(min, max))
}

pub(super) const fn number(min: f64, max: f64) -> Spec {
    spec(Kind::Number(min, max))
}

pub(super) const fn text() -> Spec {
    spec(Kind::Text)
}

pub(super) const fn word(words: &'static [&'static str]) -> Spec {
    spec(Kind::Word(words))
}

pub(super) const fn list() -> Spec {
    spec(Kind::List).clamped().not_in_form()
}

pub(super) const fn services() -> Spec {
    spec(Kind::Services).not_in_form()
}

pub(super) const fn projects() -> Spec {
    spec(Kind::Projects).not_in_form()
}

impl Spec {
    pub(super) const fn clamped(mut self) -> Spec {
        self.clamp = true;
        self
    }

    pub(super) const fn not_in_form(mut self) -> Spec {
        self.in_form = false;
        self
    }

    pub(super) const fn unset(mut self, shown: &'static str) -> Spec {
        self.unset = Some(shown);
        self
    }

    pub(super) const fn next_session(mut self) -> Spec {
        self.effect = Effect::NextSession;
        self
    }

    pub(super) const fn template(mut self, json: &'static str) -> Spec {
        self.template = Some(json);
        self
    }

    pub(super) const fn vars(mut self, vars: &'static [Var]) -> Spec {
        self.vars = vars;
        self
    }

    /// Whether `raw` is what the original's template holds.
    pub(super) fn is_template(&self, raw: Raw<'_>) -> bool {
        let Some(text) = self.template else { return false };
        let template = Raw::new(text);
        match self.kind {
            Kind::List => raw.value().is_some_and(|value| Some(value) == template.value()),
            _ => raw.f64().is_some_and(|number| template.f64() == Some(number)),
        }
    }
}

pub(super) const fn var(name: &'static str, accepts: Accepts) -> Var {
    Var { name, accepts }
}

/// A type that a key's value may have.
pub(super) trait FieldType: Sized {
    /// Reads a value; none when it is of another type or out of range.
    fn read(raw: Raw<'_>, spec: &Spec) -> Option<Self>;
    /// The value as JSON; none for "not set".
    fn value(&self) -> Option<Value>;
}

impl FieldType for bool {
    fn read(raw: Raw<'_>, _: &Spec) -> Option<bool> {
        raw.bool()
    }

    fn value(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl FieldType for f64 {
    fn read(raw: Raw<'_>, spec: &Spec) -> Option<f64> {
        let number = raw.f64()?;
        let (min, max) = match spec.kind {
            Kind::Number(min, max) => (min, max),
            Kind::Count(min, max) => (min as f64, max as f64),
            _ => return None,
        };
        if spec.clamp {
            return Some(number.clamp(min, max));
        }
        (min..=max).contains(&number).then_some(number)
    }

    fn value(&self) -> Option<Value> {
        // 12.0 is shown as 12, as it would be typed.
        if self.fract() == 0.0 && self.abs() < 9.0e15 {
            return Some((*self as i64).into());
        }
        Number::from_f64(*self).map(Value::Number)
    }
}

impl FieldType for u64 {
    fn read(raw: Raw<'_>, spec: &Spec) -> Option<u64> {
        f64::read(raw, spec).map(|number| number as u64)
    }

    fn value(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl FieldType for usize {
    fn read(raw: Raw<'_>, spec: &Spec) -> Option<usize> {
        u64::read(raw, spec).map(|number| number as usize)
    }

    fn value(&self) -> Option<Value> {
        Some((*self).into())
    }
}

impl FieldType for String {
    fn read(raw: Raw<'_>, spec: &Spec) -> Option<String> {
        let text = raw.str()?;
        match spec.kind {
            Kind::Word(words) if !words.contains(&text.as_ref()) => None,
            _ => Some(text.into_owned()),
        }
    }

    fn value(&self) -> Option<Value> {
        Some(self.as_str().into())
    }
}

impl<T: FieldType> FieldType for Option<T> {
    fn read(raw: Raw<'_>, spec: &Spec) -> Option<Option<T>> {
        T::read(raw, spec).map(Some)
    }

    fn value(&self) -> Option<Value> {
        self.as_ref()?.value()
    }
}

impl FieldType for Vec<String> {
    fn read(raw: Raw<'_>, spec: &Spec) -> Option<Vec<String>> {
        let items = raw.items()?;
        let texts: Vec<String> = items.iter().filter_map(|item| Some(item.str()?.into_owned())).collect();
        // What is no text falls out alone, unless nothing else is there.
        let usable = texts.len() == items.len() || spec.clamp && !texts.is_empty();
        usable.then_some(texts)
    }

    fn value(&self) -> Option<Value> {
        Some(self.as_slice().into())
    }
}

impl FieldType for Map<String, Value> {
    fn read(raw: Raw<'_>, _: &Spec) -> Option<Map<String, Value>> {
        match raw.value()? {
            Value::Object(map) => Some(map),
            _ => None,
        }
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Object(self.clone()))
    }
}

/// Makes the structs of the configuration and the table `KEYS` from one list of rows.
///
/// A section names its struct, the path to it from [`Config`], and its place in the file. A row is
/// `field: Type = default, "keyInFile", "Label", "Help.", spec;`. Fields that are no key of the file stand after `plus`.
macro_rules! keys {
    ($(
        $(#[doc = $doc:literal])+
        $Name:ident at $($at:ident).+, $prefix:literal {
            $($field:ident: $ty:ty = $default:expr, $key:literal, $label:literal, $help:literal, $spec:expr;)*
        } $(plus { $($(#[doc = $extra_doc:literal])+ $extra:ident: $extra_ty:ty = $extra_default:expr;)* })?
    )*) => {
        $(
            $(#[doc = $doc])+
            #[derive(Debug, Clone)]
            pub struct $Name {
                $(#[doc = $help] pub $field: $ty,)*
                $($($(#[doc = $extra_doc])+ pub $extra: $extra_ty,)*)?
            }

            impl Default for $Name {
                fn default() -> $Name {
                    $Name { $($field: $default,)* $($($extra: $extra_default,)*)? }
                }
            }

            impl $Name {
                fn of(config: &Config) -> &$Name {
                    &config.$($at).+
                }

                fn of_mut(config: &mut Config) -> &mut $Name {
                    &mut config.$($at).+
                }
            }
        )*

        /// Every key, in the order of the form and of the README.
        pub static KEYS: &[Key] = &[$($(
            Key {
                path: concat!($prefix, ".", $key),
                label: $label,
                help: $help,
                spec: $spec,
                load: |config, raw, spec| match FieldType::read(raw, spec) {
                    Some(value) => {
                        $Name::of_mut(config).$field = value;
                        true
                    }
                    None => false,
                },
                value: |config| FieldType::value(&$Name::of(config).$field),
            },
        )*)*];
    };
}
pub(super) use keys;
