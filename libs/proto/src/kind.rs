//! The event type of a ledger event's body.

use servo_model::EventType;

use crate::v1::event::Body;

/// A new body of `servo.v1.Event` does not compile until it has a type here.
pub fn kind_of(body: &Body) -> EventType {
    match body {
        Body::RunRequested(_) => EventType::RunRequested,
        Body::PlanCreated(_) => EventType::PlanCreated,
        Body::PlanFailed(_) => EventType::PlanFailed,
        Body::DispatchRequested(_) => EventType::DispatchRequested,
        Body::DispatchEnqueued(_) => EventType::DispatchEnqueued,
        Body::TaskStarted(_) => EventType::TaskStarted,
        Body::TaskFinished(_) => EventType::TaskFinished,
        Body::TimerFired(_) => EventType::TimerFired,
        Body::RunCancelRequested(_) => EventType::RunCancelRequested,
        Body::RunPaused(_) => EventType::RunPaused,
        Body::RunResumed(_) => EventType::RunResumed,
        Body::TaskForceCancelled(_) => EventType::TaskForceCancelled,
        Body::QuarantineResolved(_) => EventType::QuarantineResolved,
        Body::DispatchPaused(_) => EventType::DispatchPaused,
        Body::DispatchResumed(_) => EventType::DispatchResumed,
        Body::WorkerCommanded(_) => EventType::WorkerCommanded,
        Body::ScheduleDefined(_) => EventType::ScheduleDefined,
        Body::ScheduleTicked(_) => EventType::ScheduleTicked,
        Body::SensorDefined(_) => EventType::SensorDefined,
        Body::SensorEvaluated(_) => EventType::SensorEvaluated,
        Body::BackfillCreated(_) => EventType::BackfillCreated,
        Body::BackfillChunkPlanned(_) => EventType::BackfillChunkPlanned,
        Body::BackfillStateChanged(_) => EventType::BackfillStateChanged,
        Body::DeploymentRegistered(_) => EventType::DeploymentRegistered,
        Body::DynamicPartitionsChanged(_) => EventType::DynamicPartitionsChanged,
        Body::QuotaChanged(_) => EventType::QuotaChanged,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost::encoding::{WireType, encode_key};

    use super::*;
    use crate::v1::Event;

    /// An event that contains only an empty body of this type, decoded from its encoding.
    fn empty_body(kind: EventType) -> Body {
        let mut wire = Vec::new();
        encode_key(
            kind.code().unsigned_abs().into(),
            WireType::LengthDelimited,
            &mut wire,
        );
        wire.push(0);
        Event::decode(wire.as_slice()).unwrap().body.unwrap()
    }

    #[test]
    fn type_is_the_field_number_of_its_body() {
        for kind in EventType::ALL {
            assert_eq!(kind_of(&empty_body(*kind)), *kind);
        }
    }
}
