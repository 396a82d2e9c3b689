//! Calls the properties of `tests/properties/transcript.rs` with what the fuzzer comes up with.
#![no_main]

#[path = "../../tests/properties/mod.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::transcript::check(data));
