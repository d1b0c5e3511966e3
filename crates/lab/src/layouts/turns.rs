//! [`Layouts`]: what a campaign's rulesets are walked as.

use super::Kind;

/// One way of walking rules, or all of them in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layouts {
    /// Each layout, and the model, ruleset after ruleset.
    #[default]
    Each,
    /// One; `None` is the model, as rules are read.
    Only(Option<Kind>),
}

impl Layouts {
    /// By its name: that of a layout, `model` or `each`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "each" => Some(Self::Each),
            "model" => Some(Self::Only(None)),
            _ => {
                let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name)?;
                Some(Self::Only(Some(kind)))
            }
        }
    }

    /// What the ruleset of this number is walked as.
    #[must_use]
    pub fn of(self, number: u64) -> Option<Kind> {
        match self {
            // The place after the last layout is the model's.
            Self::Each => Kind::ALL.get((number % (Kind::ALL.len() as u64 + 1)) as usize).copied(),
            Self::Only(layout) => layout,
        }
    }
}

/// The name of what rules are walked as.
#[must_use]
pub fn name_of(layout: Option<Kind>) -> &'static str {
    layout.map_or("model", Kind::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_has_its_turn_and_its_name() {
        let turns: Vec<Option<Kind>> = (0..16).map(|number| Layouts::Each.of(number)).collect();
        assert_eq!(turns[..8], turns[8..]);
        for layout in Kind::ALL.into_iter().map(Some).chain([None]) {
            assert!(turns.contains(&layout));
            assert_eq!(Layouts::from_name(name_of(layout)), Some(Layouts::Only(layout)));
        }
        assert_eq!(Layouts::from_name("blob"), None);
    }
}
