package access

import (
	"context"
	"strings"
)

// Gateway is the name of the gateway itself, which gives resources their conditions, binds references and
// finishes deletions.
const Gateway = "system:gateway"

// Actor is who made a change, as its log entry has it.
type Actor struct {
	// Name of the caller, [Anonymous], or [Gateway].
	Name string
	// Address and Request of the caller; empty if they are not known.
	Address, Request string
}

// ActorFrom returns the caller in ctx as an actor, or the gateway if there is no caller.
func ActorFrom(ctx context.Context) Actor {
	c, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		return Actor{Name: Gateway}
	}
	out := Actor{Name: c.Identity.String(), Request: c.Request}
	if c.Address.IsValid() {
		out.Address = c.Address.String()
	}
	return out
}

// actorSeparator stands between the parts of an actor as text; names, addresses and ids have none.
const actorSeparator = "\t"

// String returns the actor as log entries have it. The gateway is the empty text, as in entries of what has expired.
func (a Actor) String() string {
	if a.Name == Gateway {
		return ""
	}
	return a.Name + actorSeparator + a.Address + actorSeparator + a.Request
}

// ParseActor reads what String has written.
func ParseActor(text string) Actor {
	if text == "" {
		return Actor{Name: Gateway}
	}
	name, rest, _ := strings.Cut(text, actorSeparator)
	address, request, _ := strings.Cut(rest, actorSeparator)
	return Actor{Name: name, Address: address, Request: request}
}
