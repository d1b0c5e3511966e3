//! Standard input can be read once.

use anyhow::bail;
use replay::CaptureName;

/// Refuses `-` where standard input was read to its end already.
pub(crate) fn standard_input_once<'a>(
    names: impl IntoIterator<Item = &'a String>,
) -> anyhow::Result<()> {
    let is_input = |name: &&String| CaptureName::parse(name).file == "-";
    match names.into_iter().filter(is_input).count() {
        0 | 1 => Ok(()),
        times => bail!("expected - (standard input) once, found it {times} times"),
    }
}
