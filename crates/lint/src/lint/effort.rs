//! [`Effort`]: limits on naming rules, on showing packets and on checking findings of one table, so that `lint` takes seconds
//! and bounded memory however much it finds.

/// The most rules that the `by` lists of all findings of a table hold together.
const NAMED: usize = 1 << 22;
/// Rules that each finding names in any case.
const AT_LEAST: usize = 100;
/// The most rules that are evaluated while packets are looked for that show findings (about 100 million a second).
const SHOWING: usize = 1 << 27;
/// The most rules that are evaluated while findings are checked; findings after that are not checked.
const CHECKING: usize = 1 << 21;

/// What was done.
#[derive(Debug)]
pub(super) struct Effort {
    named: usize,
    walked: usize,
    most: usize,
    /// A packet was not looked for without which nothing is found.
    lacks: bool,
}

impl Effort {
    /// The effort for finding and showing.
    pub(super) fn showing() -> Self {
        Self { named: 0, walked: 0, most: SHOWING, lacks: false }
    }

    /// The effort for checking what was found.
    pub(super) fn checking() -> Self {
        Self { most: CHECKING, ..Self::showing() }
    }

    /// Whether a finding that names this many rules may name one more.
    pub(super) fn names(&mut self, already: usize) -> bool {
        self.named += 1;
        already < AT_LEAST || self.named <= NAMED
    }

    /// How many of the rules that make a finding it names.
    pub(super) fn of(&mut self, rules: usize) -> usize {
        let most = if self.named + rules <= NAMED { rules } else { AT_LEAST.min(rules) };
        self.named += most;
        most
    }

    /// A walk came to this many rules.
    pub(super) fn walked(&mut self, rules: usize) {
        self.walked += rules + 1;
    }

    /// Whether packets may still be walked.
    pub(super) fn walks(&self) -> bool {
        self.walked <= self.most
    }

    /// A packet without which nothing is found has no walk: if there is no effort left for it, something may be missing.
    pub(super) fn found_none(&mut self) {
        self.lacks |= !self.walks();
    }

    /// Whether something may be missing.
    pub(super) fn lacks(&self) -> bool {
        self.lacks
    }
}
