//! The search: every state that can be reached, each once, with the shortest story that leads to it.

use std::collections::{HashMap, VecDeque};

use super::world::World;

/// The states a search has met: how each was reached, and what follows it.
#[derive(Default)]
struct Graph {
    index: HashMap<Vec<u64>, usize>,
    reached: Vec<Option<(usize, String)>>,
    edges: Vec<Vec<usize>>,
}

impl Graph {
    fn enter(&mut self, world: &World, from: Option<(usize, String)>) -> (usize, bool) {
        let new = self.reached.len();
        let id = *self.index.entry(world.fingerprint()).or_insert(new);
        if id == new {
            self.reached.push(from);
            self.edges.push(Vec::new());
        }
        (id, id == new)
    }

    fn story(&self, mut at: usize, last: &str) -> String {
        let mut steps = vec![last.to_owned()];
        while let Some((from, label)) = &self.reached[at] {
            steps.push(label.clone());
            at = *from;
        }
        steps.reverse();
        steps.join("\n  ")
    }

    /// Takes states away that nothing leads to until none is left, or only cycles are.
    fn has_cycle(&self) -> bool {
        let mut arrows = vec![0_usize; self.edges.len()];
        self.edges.iter().flatten().for_each(|&to| arrows[to] += 1);
        let mut free: Vec<usize> = (0..arrows.len()).filter(|&at| arrows[at] == 0).collect();
        let mut taken = 0;
        while let Some(at) = free.pop() {
            taken += 1;
            for &to in &self.edges[at] {
                arrows[to] -= 1;
                if arrows[to] == 0 {
                    free.push(to);
                }
            }
        }
        taken < arrows.len()
    }
}

/// Walks all states, breadth first, so that the story of a violation is the shortest. `Ok` is the count of states.
pub(super) fn explore(start: World) -> Result<usize, String> {
    let mut graph = Graph::default();
    graph.enter(&start, None);
    let mut queue = VecDeque::from([(0, start)]);
    while let Some((at, world)) = queue.pop_front() {
        let successors = world.successors();
        if successors.is_empty()
            && let Some(objection) = world.object_to_the_end()
        {
            return Err(graph.story(at, &objection));
        }
        for (label, next) in successors {
            let next = next.map_err(|objection| graph.story(at, &format!("{label}\n  {objection}")))?;
            let (to, is_new) = graph.enter(&next, Some((at, label)));
            graph.edges[at].push(to);
            if is_new {
                queue.push_back((to, next));
            }
        }
    }
    if graph.has_cycle() { Err("SPIN: turns without progress".to_owned()) } else { Ok(graph.reached.len()) }
}
