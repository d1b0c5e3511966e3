//! `[dpdk]`: the arguments of DPDK's EAL.

use toml::de::DeTable;

use dataplane::keys::{Section, Value, Wrong, found, string};

/// Arguments that the EAL may be given, far more than it knows.
const MOST_ARGUMENTS: usize = 256;

/// The arguments of the EAL, in order; empty by default.
pub(super) fn eal(top: &DeTable<'_>) -> Result<Vec<String>, Wrong> {
    let Some(value) = top.get("dpdk") else { return Ok(Vec::new()) };
    let given = Section::new("[dpdk]", value, &["eal"], &[])?.need("eal")?;
    let what = "a list of the EAL's arguments, such as \"--no-pci\"";
    let arguments = given.get_ref().as_array().ok_or_else(|| found(given, what))?;
    if arguments.len() > MOST_ARGUMENTS {
        let more = arguments.len();
        return Err((given.span(), format!("expected at most {MOST_ARGUMENTS}, found {more}")));
    }
    arguments.iter().map(argument).collect()
}

fn argument(value: &Value<'_>) -> Result<String, Wrong> {
    match string(value)? {
        text if text.is_empty() || text.contains('\0') => {
            let what = format!("expected an argument of the EAL, found {text:?}");
            Err((value.span(), what))
        }
        text => Ok(text.to_owned()),
    }
}
