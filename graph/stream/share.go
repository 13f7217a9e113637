package stream

import "time"

// Key tells subscriptions apart that do not mean the same.
type Key [32]byte

// Moment is when a subscription can go on together with equal ones.
type Moment int

// The moments: it is about to read the state, at first or again, or everything was told that
// there was. Leads is that of an execution that others share, when it begins.
const (
	AtState Moment = iota + 1
	AtStateAgain
	AtRest
	Leads
)

// Subscription is a running subscription, as its executor shows it to the transport: one
// that may leave its execution to another and follow it, or leads itself.
type Subscription interface {
	// Key is the same for subscriptions that are told the same.
	Key() Key
	// Join leaves what comes next to a leader of the same key, if no gap is between them.
	// seen is the [Step.Number] up to which this one has told the leader's events.
	Join(leader Subscription, at Moment) (seen uint64, ok bool)
	// Level is Join of a leader to another one, for those who follow it and were told all:
	// it goes on for others.
	Level(leader Subscription) (seen uint64, ok bool)
	// Resume makes the subscription go on by itself.
	Resume(from Return)
	// Ended says that nothing may be told any more but the end.
	Ended() bool
}

// Answerer is a [Subscription] that can answer an event that the leader has taken.
type Answerer interface {
	// Answer makes [Step.Event] the next event.
	Answer(event any)
}

// Return is where a subscription goes on that has followed another.
type Return struct {
	// Cursor of the last event that was told.
	Cursor string
	// Place is the [Step.Place] of the first event that was not.
	Place any
	// Err is the [Step.Err] of the leader; nil if it goes on without this one.
	Err error
	// Lagged says that this one was told too slowly what the leader has answered.
	Lagged bool
}

// Step is what a leader has done.
type Step struct {
	// Event is what was answered; nil if nothing was.
	Event any
	// Number counts the events; a mark has that of the event before it.
	Number uint64
	Mark   bool
	// Place is where in the state the event was read; nil behind the state.
	Place any
	// More says that the next event is there already.
	More bool
	// Live says that the state, if any, was told.
	Live bool
	// Wait is when to ask again at the latest, if nothing was answered and nothing is notified.
	Wait time.Duration
	// Err ended it.
	Err error
}

// Lead is what the transport tells a leader.
type Lead struct {
	// First is the subscription whose place it takes.
	First Subscription
	// Notify is called when something has happened. It is quick.
	Notify func()
	// Late says whether somebody has joined since it was called last. If not, nobody joins
	// before the end of the state was told.
	Late func() bool
}

// Share says that the transport shares executions from now on, or does not.
func (s *State) Share(on bool) { s.shares = on }

// Shares says whether the transport shares executions.
func (s *State) Shares() bool { return s != nil && s.shares }

// First is the subscription in whose place another one leads; nil of one that does not lead.
func (s *State) First() Subscription {
	if s == nil {
		return nil
	}
	return s.Lead.First
}

// Meet tells the transport that a subscription can go on together with others.
func (s *State) Meet(sub Subscription, at Moment) { s.met, s.at = sub, at }

// Met is the subscription that can go on together with others, nil if it cannot. It is
// told once.
func (s *State) Met() (sub Subscription, at Moment) {
	sub, at, s.met = s.met, s.at, nil
	return sub, at
}

// Take notes what a leader has done.
func (s *State) Take(step Step) { s.step = step }

// Step is what a leader has done.
func (s *State) Step() Step { return s.step }
