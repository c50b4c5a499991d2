//! Small sizes of what `pq-sim faults`, `pq-sim model` and `pq-sim hunt` do at full size.

use sim::{Case, Size, run_case, run_model, run_parts, run_witnesses, scenarios};

// S33, S34, S37, S39, S40: some of the calls, each with another failure.
#[test]
fn a_failing_call_costs_nothing_that_was_accepted() {
    for scenario in scenarios().iter().filter(|scenario| scenario.before.len() < 200) {
        for case in Case::all(60).step_by(61) {
            if let Err(found) = run_case(scenario, case) {
                panic!("{}: {case}: {found}", scenario.name);
            }
        }
    }
}

// S33, S34
#[test]
fn what_there_is_room_for_is_stored() {
    assert_eq!(run_parts().found, Vec::<String>::new());
}

#[test]
fn streams_end_where_the_model_foresees() {
    if let Err(found) = run_model(Size { cases: 40, steps: 50, seed: 11 }) {
        panic!("{found}");
    }
}

// S16, S27, S28: settings, lost files, planted files, ids, and a creation that is stopped.
#[test]
fn what_random_runs_do_not_do_is_safe_too() {
    for seed in 1..20 {
        if let Err(found) = run_witnesses(seed, &|_| ()) {
            panic!("{found}");
        }
    }
}
