//! Strongly connected parts of a graph, by Tarjan's algorithm (SIAM J. Comput. 1972).

use crate::resolve::Edge;

/// The circles among N `modules`: the places of those in each, two or more.
pub(crate) fn find(modules: usize, edges: &[Edge]) -> Vec<Vec<usize>> {
    let mut targets = vec![Vec::new(); modules];
    edges.iter().for_each(|edge| targets[edge.from].push(edge.to));
    let mut search = Search {
        targets,
        order: vec![None; modules],
        lowest: vec![0; modules],
        open: Vec::new(),
        is_open: vec![false; modules],
        count: 0,
        found: Vec::new(),
    };
    for module in 0..modules {
        if search.order[module].is_none() {
            search.visit(module);
        }
    }
    search.found
}

/// Whether both ends of an edge lie in a circle.
pub(crate) fn within(circle: &[usize], edge: &Edge) -> bool {
    circle.contains(&edge.from) && circle.contains(&edge.to)
}

struct Search {
    targets: Vec<Vec<usize>>,
    /// When a module was first visited.
    order: Vec<Option<usize>>,
    /// The first visited of the modules that are known to be reached from here and to reach it.
    lowest: Vec<usize>,
    open: Vec<usize>,
    is_open: Vec<bool>,
    count: usize,
    found: Vec<Vec<usize>>,
}

impl Search {
    fn visit(&mut self, module: usize) {
        let order = self.count;
        self.count += 1;
        self.order[module] = Some(order);
        self.lowest[module] = order;
        self.open.push(module);
        self.is_open[module] = true;
        for place in 0..self.targets[module].len() {
            let target = self.targets[module][place];
            match self.order[target] {
                None => {
                    self.visit(target);
                    self.lowest[module] = self.lowest[module].min(self.lowest[target]);
                }
                Some(seen) if self.is_open[target] => {
                    self.lowest[module] = self.lowest[module].min(seen);
                }
                Some(_) => {}
            }
        }
        if self.lowest[module] == order {
            self.close(module);
        }
    }

    fn close(&mut self, module: usize) {
        let start = self.open.iter().rposition(|open| *open == module).unwrap_or(0);
        let mut circle = self.open.split_off(start);
        circle.iter().for_each(|module| self.is_open[*module] = false);
        if circle.len() > 1 {
            circle.sort_unstable();
            self.found.push(circle);
        }
    }
}
