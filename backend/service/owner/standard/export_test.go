package standard

import (
	"context"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// ReflectWithin is Reflect with a time limit, for tests.
func ReflectWithin(ctx context.Context, c *remote.Client, limit time.Duration) ([]byte, error) {
	return reflectWithin(ctx, c, limit)
}

// ReadReflection is Reflect with a function in place of a service. The function returns the encoded answer to a request
// for a text.
func ReadReflection(ctx context.Context, answer func(text string) []byte) ([]byte, error) {
	return newReflection(func(_ context.Context, _ protowire.Number, text string) ([]byte, error) {
		return answer(text), nil
	}).read(ctx)
}

// The maximum number of violations in an answer, and the maximum number of descriptor files.
const (
	MaxViolations = maxViolations
	MaxFiles      = maxFiles
)

// Conversion is the conversion of the specs of a kind, for tests.
type Conversion struct{ plan *plan }

// NewConversion returns the conversion of a kind.
func NewConversion(d *Descriptors, kind string) (*Conversion, error) {
	p, err := d.compile(kind, &KindMapping{})
	return &Conversion{p}, err
}

// Message returns the message of the resource.
func (c *Conversion) Message() protoreflect.MessageDescriptor { return c.plan.resource }

// Fill writes a spec into a message.
func (c *Conversion) Fill(m protoreflect.Message, key backend.Key, spec []byte) []owner.Violation {
	return c.plan.fill(m, owner.Resource{Key: key, Spec: spec})
}

// Show returns the spec of a message.
func (c *Conversion) Show(m protoreflect.Message) ([]byte, error) {
	return shownPart(c.plan.spec, c.plan.specAt, m)
}

// Violations returns the violations that the error of a call of Update names.
func (c *Conversion) Violations(err error) []owner.Violation {
	return c.plan.violations(c.plan.update, err, "refused")
}
