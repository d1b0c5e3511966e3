//! Both campaigns over many rulesets, on some threads, with a line for each ruleset.

use fastrand::Rng;
use lint::{Compared, diff};

use super::edit::{edited, loaded_as, reordered, text_of};
use super::findings::Claims;
use super::regions::{Packets, hold};
use super::{Subject, in_threads};

/// Rules times packets that one finding is held to at most: a packet takes as long as the rules that it passes.
const MOST_STEPS: u64 = 400_000_000;

/// What came of a campaign over diff.
#[derive(Debug, Clone, Default)]
pub struct Differed {
    /// Edits that were compared.
    pub edits: usize,
    /// Of them, those with regions.
    pub different: usize,
    /// Proven to be the same.
    pub same: usize,
    /// Those that say that something is not known.
    pub unknown: usize,
    /// Too large to compare in full, by ruleset.
    pub too_large: Vec<String>,
    /// Regions.
    pub regions: usize,
    /// The packets.
    pub packets: Packets,
    /// Rulesets in another order of text that were proven equal.
    pub equal: usize,
    /// Those in another order that were too large for that, or of which something is not known.
    pub not_proven: Vec<String>,
    /// What was contradicted.
    pub wrong: Vec<String>,
}

/// What came of a campaign over lint.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Findings that packets can contradict.
    pub held: usize,
    /// Others: about names, and shown by one packet.
    pub others: usize,
    /// Packets that were walked.
    pub walked: u64,
    /// Of them, those that met a rule which is said to be needless.
    pub met: u64,
    /// Tables that were too large.
    pub unproven: Vec<String>,
    /// What was contradicted.
    pub wrong: Vec<String>,
}

/// A seed for a part of a campaign.
fn seed_of(seed: u64, name: &str, number: usize) -> u64 {
    let name =
        name.bytes().fold(seed, |all, byte| (all ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    name ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What `diff` says of so many edits of each ruleset, and of its rules in another order, held to so many packets in all.
pub fn hold_diff(
    subjects: &[Subject],
    (edits, packets, seed): (usize, u64, u64),
    threads: usize,
    mut tell: impl FnMut(&str) + Send,
) -> Differed {
    // Lines are those of the canonical text.
    let texts: Vec<String> = subjects.iter().map(|it| text_of(&it.ruleset)).collect();
    let old: Vec<_> =
        subjects.iter().zip(&texts).map(|(it, text)| loaded_as(text, &it.ruleset)).collect();
    let each = packets.div_ceil((subjects.len() * edits).max(1) as u64);
    let jobs = edits + 1;
    let job = |number: usize| -> Differed {
        let (of, edit) = (number / jobs, number % jobs);
        let (name, Some(old)) = (&subjects[of].name, &old[of]) else {
            return Differed::wrong(format!("{}: its text is not read back", subjects[of].name));
        };
        let seed = seed_of(seed, name, edit);
        let mut rng = Rng::with_seed(seed);
        if edit == edits {
            return reorder(name, old, &mut rng);
        }
        let Some(new) = edited(old, &texts[of], &mut rng) else {
            return Differed::wrong(format!("{name}: no edit was found"));
        };
        match hold(old, &new, each, seed) {
            Err(wrong) => Differed::wrong(format!("{name}: {}: {wrong}", new.what)),
            Ok(held) => {
                let compared = held.found.compared();
                let too_large = format!("{name}: {}", new.what);
                Differed {
                    edits: 1,
                    different: (compared == Compared::Different).into(),
                    same: (compared == Compared::Same).into(),
                    unknown: (!held.found.unknown.is_empty()).into(),
                    too_large: held.too_large.then_some(too_large).into_iter().collect(),
                    regions: held.found.regions.len(),
                    packets: held.packets,
                    ..Differed::default()
                }
            }
        }
    };
    let (mut all, mut each) = (Differed::default(), vec![(0, Differed::default()); subjects.len()]);
    in_threads(threads, subjects.len() * jobs, job, |number, one| {
        one.wrong.iter().for_each(|wrong| tell(wrong));
        let (done, of) = &mut each[number / jobs];
        of.add(one);
        *done += 1;
        if *done == jobs {
            tell(&format!("{}: {}", subjects[number / jobs].name, of.line()));
            all.add(of.clone());
        }
    });
    all
}

/// Its rules in another order of text are the same.
fn reorder(name: &str, old: &rules::model::Ruleset, rng: &mut Rng) -> Differed {
    let Some(new) = reordered(old, rng) else {
        return Differed::wrong(format!("{name}: in another order it is not read back"));
    };
    match diff(old, &new) {
        Ok(found) => match found.compared() {
            Compared::Same => Differed { equal: 1, ..Differed::default() },
            Compared::Unknown => {
                let not_proven = vec![format!("{name}: {}", found.unknown.join("; "))];
                Differed { not_proven, ..Differed::default() }
            }
            Compared::Different => {
                Differed::wrong(format!("{name}: in another order: {}", found.text()))
            }
        },
        Err(error) => Differed::wrong(format!("{name}: {error:?}")),
    }
}

impl Differed {
    fn wrong(wrong: String) -> Self {
        Self { wrong: vec![wrong], ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.edits += other.edits;
        self.different += other.different;
        self.same += other.same;
        self.unknown += other.unknown;
        self.too_large.extend(other.too_large);
        self.regions += other.regions;
        self.packets.add(other.packets);
        self.equal += other.equal;
        self.not_proven.extend(other.not_proven);
        self.wrong.extend(other.wrong);
    }

    /// In one line.
    #[must_use]
    pub fn line(&self) -> String {
        let Packets { walked, inside, depends, unknown, open } = self.packets;
        format!(
            "{} edits ({} different, {} the same, {} with something unknown, {} too large), {} regions; {walked} packets, \
             {inside} inside, {depends} where it depends, {unknown} where it is unknown, {open} not decided; {} in another \
             order proven equal, {} not; {} wrong",
            self.edits,
            self.different,
            self.same,
            self.unknown,
            self.too_large.len(),
            self.regions,
            self.equal,
            self.not_proven.len(),
            self.wrong.len()
        )
    }
}

/// What `lint` finds in each ruleset, every finding held to so many packets.
pub fn hold_lint(
    subjects: &[Subject],
    (packets, seed): (u64, u64),
    threads: usize,
    mut tell: impl FnMut(&str) + Send,
) -> Found {
    let claims: Vec<_> = subjects.iter().map(|it| Claims::of(&it.ruleset)).collect();
    let jobs: Vec<(usize, usize)> = claims
        .iter()
        .enumerate()
        .flat_map(|(of, (claims, _))| (0..claims.count()).map(move |number| (of, number)))
        .collect();
    let mut each: Vec<Found> = Vec::new();
    for (subject, (claims, found)) in subjects.iter().zip(&claims) {
        let mut one = Found { others: claims.others, ..Found::default() };
        if found.contradicted > 0 {
            one.wrong
                .push(format!("{}: {} findings contradicted", subject.name, found.contradicted));
        }
        one.unproven
            .extend(found.unproven.iter().map(|table| format!("{}: {table}", subject.name)));
        if claims.count() == 0 {
            tell(&format!("{}: {}", subject.name, one.line()));
        }
        each.push(one);
    }
    let job = |number: usize| {
        let (of, finding) = jobs[number];
        let rules = subjects[of].ruleset.rule_count() as u64;
        let packets = packets.min(MOST_STEPS / rules.max(1));
        claims[of].0.hold(finding, packets, seed_of(seed, &subjects[of].name, finding))
    };
    in_threads(threads, jobs.len(), job, |number, held| {
        let of = jobs[number].0;
        let one = &mut each[of];
        one.held += 1;
        match held {
            Ok(held) => {
                one.walked += held.walked;
                one.met += held.met;
            }
            Err(wrong) => {
                let wrong = format!("{}: {wrong}", subjects[of].name);
                tell(&wrong);
                one.wrong.push(wrong);
            }
        }
        if one.held == claims[of].0.count() {
            tell(&format!("{}: {}", subjects[of].name, one.line()));
        }
    });
    let mut all = Found::default();
    each.into_iter().for_each(|one| all.add(one));
    all
}

impl Found {
    fn add(&mut self, other: Self) {
        self.held += other.held;
        self.others += other.others;
        self.walked += other.walked;
        self.met += other.met;
        self.unproven.extend(other.unproven);
        self.wrong.extend(other.wrong);
    }

    /// In one line.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{} findings held to {} packets ({} met a rule that is said to be needless), {} others; {} tables not proven; {} wrong",
            self.held,
            self.walked,
            self.met,
            self.others,
            self.unproven.len(),
            self.wrong.len()
        )
    }
}
