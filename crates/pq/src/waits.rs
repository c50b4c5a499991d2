//! Who waits for what: small lists of wakers. Each is registered *before* the condition is tested again, so no wake-up is lost;
//! a wake-up may be spurious, so every waiter tests again.
//!
//! ```text
//!   Bell      any number of waiters, all woken by a ring (a cursor was saved, a cursor moved)
//!   Parking   the pool's workers; a wake between a worker's scan and its park is kept
//!   Handoff   one value from a reader thread to whoever asked for it
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::clock::locked;

/// Any number of waiters, all woken at once.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    wakers: Mutex<Vec<Waker>>,
}

impl Bell {
    /// To be woken by the next ring. The caller tests its condition after this.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut wakers = locked(&self.wakers);
        if !wakers.iter().any(|w| w.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Wakes everybody registered, outside the lock.
    pub(crate) fn ring(&self) {
        let wakers = std::mem::take(&mut *locked(&self.wakers));
        for waker in wakers {
            waker.wake();
        }
    }
}

/// The pool's workers.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    state: Mutex<Parked>,
}

#[derive(Debug, Default)]
struct Parked {
    wakers: VecDeque<(usize, Waker)>,
    permits: usize,
    workers: usize,
}

impl Parking {
    /// How many workers there are: no more wake-ups than that are kept. None as long as nobody says so.
    #[cfg(feature = "tokio")]
    pub(crate) fn set_workers(&self, workers: usize) {
        locked(&self.state).workers = workers;
    }

    /// Wakes `n` workers; those not parked now find the wake-up when they are about to park.
    pub(crate) fn wake(&self, n: usize) {
        let mut woken = Vec::new();
        {
            let mut state = locked(&self.state);
            for _ in 0..n.min(state.workers) {
                match state.wakers.pop_front() {
                    Some((_, waker)) => {
                        state.permits += 1;
                        woken.push(waker);
                    }
                    None => state.permits = (state.permits + 1).min(state.workers),
                }
            }
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// Parks a worker until a wake-up comes, or takes one that is there.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_park(&self, worker: usize, cx: &Context<'_>) -> Poll<()> {
        let mut state = locked(&self.state);
        state.wakers.retain(|(index, _)| *index != worker);
        if state.permits > 0 {
            state.permits -= 1;
            return Poll::Ready(());
        }
        state.wakers.push_back((worker, cx.waker().clone()));
        Poll::Pending
    }
}

/// One value on its way from another thread.
#[derive(Debug)]
pub(crate) struct Handoff<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

/// The sending half; dropped unused, the receiver gets `None`.
#[derive(Debug)]
pub(crate) struct Sender<T> {
    slot: Option<Arc<Mutex<Slot<T>>>>,
}

#[derive(Debug)]
struct Slot<T> {
    value: Option<T>,
    done: bool,
    waker: Option<Waker>,
}

/// Both halves.
pub(crate) fn handoff<T>() -> (Sender<T>, Handoff<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, done: false, waker: None }));
    (Sender { slot: Some(Arc::clone(&slot)) }, Handoff { slot })
}

impl<T> Sender<T> {
    /// Hands the value over.
    pub(crate) fn send(mut self, value: T) {
        self.finish(Some(value));
    }

    fn finish(&mut self, value: Option<T>) {
        let Some(slot) = self.slot.take() else { return };
        let waker = {
            let mut slot = locked(&slot);
            slot.value = value;
            slot.done = true;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.finish(None);
    }
}

impl<T> Handoff<T> {
    /// The value; `None` if the sender is gone.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Option<T>> {
        let mut slot = locked(&self.slot);
        if slot.done {
            return Poll::Ready(slot.value.take());
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
