//! A comparison that stands after a statement which changes something.

use super::{Act, Next};
use crate::lower::compare::Tested;
use rules::{Outcome, Transit};

/// A comparison among statements.
#[derive(Debug)]
pub(crate) struct Test(pub Box<dyn Tested>);

impl Act for Test {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        match self.0.evaluate(transit) {
            Outcome::YES => Next::On,
            Outcome::NO => Next::Ends,
            _ => Next::MayEnd,
        }
    }

    fn lacks(&self) -> Option<&str> {
        self.0.lacks()
    }

    fn tracks(&self) -> bool {
        self.0.tracks()
    }
}
