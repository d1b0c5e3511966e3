//! libFuzzer around the targets of `lab::fuzz`; `TAMIS_FUZZ` names the one to run.
#![no_main]

use std::sync::LazyLock;

use lab::fuzz::TARGETS;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("TAMIS_FUZZ").expect("TAMIS_FUZZ names a target");
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    target.unwrap_or_else(|| panic!("no target {name}")).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
