//! A receiver that passes on what it gets, and streams that do not come to their end.

use std::io::Write;

use fairpath_core::ByteCount;

use super::Receiver;
use crate::entry::Entry;
use crate::error::ReceiveError;
use crate::outlet::{Outlet, Passage};
use crate::proof::Seal;
use crate::protocol::{Control, FromReceiver};

impl Receiver {
    /// The same, which passes the only file or stream of its sender on in order instead of writing files. Whoever
    /// reads it knows that it is whole only when [`Receiver::serve`] has succeeded.
    pub fn into_pipe(self, output: impl Write + Send + 'static) -> Self {
        Self { outlet: Some(Outlet::new(output)), ..self }
    }

    /// How much was passed on, where a part was and the rest has not come.
    pub fn half_passed_on(&self) -> Option<ByteCount> {
        let begun = self.outlet.as_ref().and_then(Outlet::begun).map(ByteCount::new);
        begun.filter(|_| self.sender_run().as_ref().is_none_or(|run| run.received.is_none()))
    }

    /// The plan where everything is passed on.
    pub(super) async fn prepare_pipe(
        &self,
        outlet: &Outlet,
        entry: Entry,
        control: &Control,
        seal: Seal,
    ) -> Result<Passage, ReceiveError> {
        self.progress.be_patient();
        control.write(&FromReceiver::Compare(vec![])).await?;
        for answer in outlet.plan() {
            control.write(&answer).await?;
        }
        control.write(&FromReceiver::Begin).await?;
        Ok(Passage::new(outlet.clone(), entry, seal, self.progress.clone()))
    }

    /// The same error, where a stream did not come to its end.
    pub(super) fn of_a_stream(&self, error: ReceiveError, is_interrupted: bool) -> ReceiveError {
        match (error, self.half_passed_on()) {
            // The sender has said that nothing follows.
            (ReceiveError::Sender { .. }, Some(written)) => ReceiveError::BrokeOff { written },
            (ReceiveError::PeerGone(_), Some(written)) if is_interrupted => ReceiveError::BrokeOff { written },
            (ReceiveError::PeerGone(why), _) if self.progress.snapshot().is_open => ReceiveError::StreamGone(why),
            (error, _) => error,
        }
    }
}
