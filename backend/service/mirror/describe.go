package mirror

import (
	"context"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// describe reads the service's description of itself, and notes the kinds whose SDL the description contradicts.
func (m *Mirror) describe(ctx context.Context) (*owner.Description, error) {
	asking, cancel := context.WithTimeout(access.WithoutCaller(ctx), callTimeout)
	defer cancel()
	d, err := m.service.Describe(asking)
	m.noteAnswer(ctx, describeCall, err)
	if err != nil {
		return nil, err
	}
	problems := map[string]string{}
	for _, k := range m.kinds {
		if why := contradiction(k, d); why != "" {
			problems[k.Name] = why
		}
	}
	m.mu.Lock()
	was := m.problems
	m.description = &d
	m.problems = problems
	m.mu.Unlock()
	for name, why := range problems {
		if was[name] != why {
			m.log.Error("the service contradicts the SDL of a kind, of which nothing can be written now",
				zap.String("kind", name), zap.String("why", why))
		}
	}
	return &d, nil
}

// capabilities returns what the service can do with a kind. It returns false if the service does not have the kind.
func capabilities(d owner.Description, name string) (owner.Kind, bool) {
	at := slices.IndexFunc(d.Kinds, func(k owner.Kind) bool { return k.Name == name })
	if at < 0 {
		return owner.Kind{}, false
	}
	return d.Kinds[at], true
}

// isPartial reports whether the service may show only a part of each resource of a kind: see [owner.Kind].Partial. It
// returns true until the service has described itself.
func (m *Mirror) isPartial(k *kind.Kind) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.description == nil {
		return true
	}
	can, _ := capabilities(*m.description, k.Name)
	return can.Partial
}

// contradiction returns the reason why a service cannot do what the SDL of a kind offers; "" if it can.
func contradiction(k *kind.Kind, d owner.Description) string {
	can, known := capabilities(d, k.Name)
	if !known {
		return "the service does not have the kind " + k.Name
	}
	for _, verb := range k.Verbs {
		switch verb {
		case descriptor.VerbCreate, descriptor.VerbUpsert, descriptor.VerbDelete:
			if !can.Writes {
				return fmt.Sprintf("the SDL has the verb %s, and the service does not take writes of %s", verb, k.Name)
			}
		case descriptor.VerbUpdate, descriptor.VerbPatch:
			if !can.Writes || !can.Conditional {
				return fmt.Sprintf(
					"the SDL has the verb %s, and the service does not take conditional writes of %s", verb, k.Name)
			}
		}
	}
	return ""
}

// Abilities returns what the service can do with a kind that a caller wants to write. It returns UNAVAILABLE if the
// kind cannot be written now.
func (m *Mirror) Abilities(ctx context.Context, k *kind.Kind, key backend.Key) (owner.Kind, error) {
	m.mu.Lock()
	d := m.description
	m.mu.Unlock()
	if d == nil {
		var err error
		if d, err = m.describe(ctx); err != nil {
			return owner.Kind{}, m.unavailable(key, err)
		}
	}
	m.mu.Lock()
	problem := m.problems[k.Name]
	m.mu.Unlock()
	can, _ := capabilities(*d, k.Name)
	if problem == "" {
		return can, nil
	}
	return can, (&failure.Error{
		Code:    failure.CodeUnavailable,
		Message: "nothing of kind " + k.Name + " can be written now: " + problem,
	}).At(key)
}
