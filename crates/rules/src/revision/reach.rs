//! Where jumps lead. A loop of chains is refused where a packet gets to it, as in the kernel, and held where none
//! does.

use std::collections::{HashMap, HashSet};

use super::TableRevision;

impl TableRevision {
    /// Whether its chains form a loop, wherever that is.
    pub(super) fn loops(&self) -> bool {
        loops(0..self.heads.len() as u32, |chain| self.jumps(chain))
    }

    /// The chains that a chain's rules jump to.
    pub(super) fn jumps(&self, chain: u32) -> Vec<u32> {
        self.chains.chains.get(chain as usize).map(|chain| chain.jumps()).unwrap_or_default()
    }
}

/// Whether a loop is reached from some of these chains; `jumps` gives what a chain jumps to.
pub(super) fn loops(from: impl IntoIterator<Item = u32>, jumps: impl Fn(u32) -> Vec<u32>) -> bool {
    // By chain: whether it is on the path that is being followed.
    let mut seen: HashMap<u32, bool> = HashMap::new();
    for start in from {
        if seen.contains_key(&start) {
            continue;
        }
        // The path of chains from `start`, each with the jumps that are left: no machine stack.
        let mut path = vec![(start, jumps(start))];
        seen.insert(start, true);
        while let Some((chain, left)) = path.last_mut() {
            let Some(to) = left.pop() else {
                seen.insert(*chain, false);
                path.pop();
                continue;
            };
            match seen.get(&to) {
                Some(true) => return true,
                Some(false) => {}
                None => {
                    seen.insert(to, true);
                    path.push((to, jumps(to)));
                }
            }
        }
    }
    false
}

/// Whether a chain is reached from some of these, which it is from itself.
pub(super) fn reaches(from: Vec<u32>, to: u32, jumps: impl Fn(u32) -> Vec<u32>) -> bool {
    let mut seen: HashSet<u32> = from.iter().copied().collect();
    let mut left = from;
    while let Some(chain) = left.pop() {
        if chain == to {
            return true;
        }
        left.extend(jumps(chain).into_iter().filter(|next| seen.insert(*next)));
    }
    false
}
