//! Constants, and what is not evaluated.

use super::Load;
use crate::lower::word::Loaded;
use rules::Transit;

/// A number that stands in the rule.
#[derive(Debug)]
pub(crate) struct Constant(pub u128);

impl Load for Constant {
    fn load(&self, _transit: &Transit<'_, '_>) -> Loaded {
        Loaded::known(self.0)
    }

    fn always(&self) -> bool {
        true
    }

    fn bytecode(&self, _show: &mut dyn FnMut(String)) {}
}

/// What is not evaluated: its name, and the width of its value.
#[derive(Debug)]
pub(crate) struct Unevaluated {
    pub name: Box<str>,
    pub bits: u32,
    pub tracks: bool,
}

impl Load for Unevaluated {
    fn load(&self, _transit: &Transit<'_, '_>) -> Loaded {
        Loaded::anything(self.bits)
    }

    fn tracks(&self) -> bool {
        self.tracks
    }

    fn lacks(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn bytecode(&self, _show: &mut dyn FnMut(String)) {}
}
