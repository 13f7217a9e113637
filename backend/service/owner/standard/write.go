package standard

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// invalid returns the answer for a write that cannot be sent.
func invalid(violations ...owner.Violation) owner.Answer {
	return owner.Answer{Outcome: owner.Invalid, Violations: violations}
}

// Write implements [owner.Service]. A replacement changes only the fields that are part of the kind.
func (c *Client) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	key := w.Resource.Key
	p, err := c.plan(key.Kind)
	if err != nil {
		return owner.Answer{}, err
	}
	if err := p.checkKey(key); err != nil {
		return invalid(owner.Violation{Path: "metadata.name", Rule: "service", Message: err.Error()}), nil
	}
	if w.DryRun && !p.described().DryRun {
		return owner.Answer{}, c.unimplemented(p, "dry run")
	}
	if lacking := p.lacking(w.Resource); len(lacking) > 0 {
		return invalid(lacking...), nil
	}
	if w.IfAbsent {
		return c.create(ctx, p, w)
	}
	return c.replace(ctx, p, w)
}

func (c *Client) unimplemented(p *plan, what string) error {
	return fmt.Errorf("service %s: %w: no %s of %s", c.name, owner.ErrUnimplemented, what, p.name)
}

// lacking returns violations about metadata that the service cannot store.
func (p *plan) lacking(r owner.Resource) (out []owner.Violation) {
	for _, one := range []struct {
		has  bool
		at   fieldAt
		path string
	}{
		{len(r.Labels) > 0, p.labelsAt, "metadata.labels"},
		{len(r.Annotations) > 0, p.annotationsAt, "metadata.annotations"},
		{r.Description != "", p.descriptionAt, "metadata.description"},
	} {
		if one.has && len(one.at) == 0 {
			out = append(out, owner.Violation{
				Path: one.path, Rule: "service", Message: "the service cannot keep it; leave it out",
			})
		}
	}
	return out
}

// fill sets the fields of m that callers set from r. It returns violations about values that m cannot express.
func (p *plan) fill(m protoreflect.Message, r owner.Resource) []owner.Violation {
	object, err := parseObject(r.Spec)
	if err != nil {
		return []owner.Violation{{Path: "spec", Rule: "type", Message: shortText(err.Error())}}
	}
	p.nameAt.setText(m, p.nameIn(r.Key))
	p.namespaceAt.setText(m, r.Namespace)
	p.descriptionAt.setText(m, r.Description)
	setTexts := func(at fieldAt, texts map[string]string) {
		if len(at) == 0 {
			return
		}
		at.clear(m)
		for key, text := range texts {
			at.holder(m).Mutable(at.last()).Map().Set(
				protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(text))
		}
	}
	setTexts(p.labelsAt, r.Labels)
	setTexts(p.annotationsAt, r.Annotations)
	for _, one := range p.set {
		one.setText(m, one.text)
	}
	e := &encoder{}
	part := m
	if len(p.specAt) > 0 {
		part = p.specAt.holder(m).Mutable(p.specAt.last()).Message()
	}
	e.encode(p.spec, part, object, "spec")
	return e.violations
}

// put sets the field of *request that holds the resource. If the method's request is the resource itself, put replaces
// *request by it.
func (m *method) put(request *protoreflect.Message, resource protoreflect.Message) {
	if m.resourceItself {
		*request = resource
		return
	}
	m.resourceAt.set(*request, protoreflect.ValueOfMessage(resource))
}

// writeRequest returns a request to write a resource.
func (p *plan) writeRequest(m *method, resource protoreflect.Message, w owner.Write) protoreflect.Message {
	request := m.request().ProtoReflect()
	m.put(&request, resource)
	if w.DryRun && len(m.dryRunAt) > 0 {
		m.dryRunAt.set(request, protoreflect.ValueOfBool(true))
	}
	m.identify(request, w.Resource.WriteID)
	return request
}

// identify sets the id by which the service recognises a request that is sent again.
func (m *method) identify(request protoreflect.Message, id string) {
	if len(m.requestAt) > 0 && id != "" {
		m.requestAt.setText(request, requestID(id))
	}
}

// requestID returns the id of a write as a UUID, because services require UUIDs.
func requestID(id string) string {
	if known, err := uuid.Parse(id); err == nil {
		return known.String()
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(id)).String()
}

func (c *Client) create(ctx context.Context, p *plan, w owner.Write) (owner.Answer, error) {
	key := w.Resource.Key
	switch {
	case p.create == nil:
		return owner.Answer{}, c.unimplemented(p, "create")
	case w.DryRun && len(p.create.dryRunAt) == 0:
		return owner.Answer{}, c.unimplemented(p, "dry run")
	}
	resource := p.newResource()
	if violations := p.fill(resource, w.Resource); len(violations) > 0 {
		return invalid(violations...), nil
	}
	request := p.writeRequest(p.create, resource, w)
	if parent, _ := splitPattern(p.pattern()); parent != "" {
		p.create.parentAt.setText(request, expand(parent, key.Namespace, ""))
	}
	p.create.idAt.setText(request, key.Name)
	answer, decided, err := c.send(ctx, p, p.create, key, request)
	switch {
	case err != nil:
		return owner.Answer{}, err
	case decided.Outcome == owner.Exists:
		return c.withResource(ctx, p, key, decided), nil
	case decided.Outcome == owner.Absent: // the parent of the new resource does not exist
		decided.Outcome = owner.Refused
		return decided, nil
	case decided.Outcome == owner.Conflict:
		return c.createConflict(ctx, p, key, decided), nil
	case decided.Outcome != owner.Done:
		return decided, nil
	}
	return c.written(ctx, p, w, answer)
}

// createConflict returns the answer to a create after the service has answered ABORTED or FAILED_PRECONDITION. It is
// Exists if the resource exists, otherwise Refused.
func (c *Client) createConflict(
	ctx context.Context, p *plan, key backend.Key, decided owner.Answer,
) owner.Answer {
	now := c.withResource(ctx, p, key, decided)
	now.Outcome = owner.Refused
	if now.Resource != nil {
		now.Outcome = owner.Exists
	}
	return now
}

// withResource adds the current resource to an answer, if it can be read.
func (c *Client) withResource(ctx context.Context, p *plan, key backend.Key, a owner.Answer) owner.Answer {
	now, err := c.fetch(ctx, p, key)
	if err != nil || now == nil {
		return a
	}
	if r, err := p.show(key, now); err == nil {
		a.Resource = &r
	}
	return a
}

// replace replaces an existing resource.
func (c *Client) replace(ctx context.Context, p *plan, w owner.Write) (owner.Answer, error) {
	key := w.Resource.Key
	m := p.update
	if m == nil || p.upsert != nil && w.IfTag == "" {
		m = p.upsert
	}
	switch {
	case m == nil:
		return owner.Answer{}, c.unimplemented(p, "update")
	case w.DryRun && len(m.dryRunAt) == 0:
		return owner.Answer{}, c.unimplemented(p, "dry run")
	}
	was, refusal, err := c.current(ctx, p, key, w.IfTag, w.IfUID)
	repeated := err == nil && p.isRepeated(m, w, was, refusal)
	if err != nil || refusal != nil && !repeated {
		return answerOf(refusal), err
	}
	next := proto.Clone(was.Interface()).ProtoReflect()
	if violations := p.fill(next, w.Resource); len(violations) > 0 {
		return invalid(violations...), nil
	}
	changed := differing(was, next, p.inside())
	switch {
	case repeated:
		p.tagAt.setText(next, w.IfTag)
	case len(changed) == 0 && !w.DryRun:
		return p.done(key, was), nil
	}
	request := p.writeRequest(m, next, w)
	m.tagAt.setText(request, w.IfTag)
	if len(m.maskAt) > 0 {
		m.setMask(request, changed)
	}
	answer, decided, err := c.send(ctx, p, m, key, request)
	switch {
	case err != nil:
		return owner.Answer{}, err
	case decided.Outcome == owner.Conflict:
		return c.changeConflict(ctx, p, key, w.IfTag, decided)
	case decided.Outcome == owner.Exists:
		decided.Outcome = owner.Refused // another resource has what this one asks for
		return decided, nil
	case decided.Outcome != owner.Done:
		return decided, nil
	}
	return c.written(ctx, p, w, answer)
}

// isRepeated reports whether a write must be sent again although the resource has another tag now. The first attempt
// may have changed the tag. If the service recognises the request by its id, it repeats its first answer. If it does
// not, the old tag in the request is a conflict.
func (p *plan) isRepeated(m *method, w owner.Write, was protoreflect.Message, refusal *owner.Answer) bool {
	if !w.Resent || len(m.requestAt) == 0 || refusal == nil || refusal.Outcome != owner.Conflict {
		return false
	}
	return w.IfUID == "" || w.IfUID == p.uidAt.text(was)
}

func answerOf(a *owner.Answer) owner.Answer {
	if a == nil {
		return owner.Answer{}
	}
	return *a
}

// current returns the current resource. If the resource does not satisfy the conditions of the write, current also
// returns the answer to the write. It returns no resource if there is none, or if the service does not show it.
func (c *Client) current(
	ctx context.Context, p *plan, key backend.Key, ifTag, ifUID string,
) (protoreflect.Message, *owner.Answer, error) {
	was, err := c.fetch(ctx, p, key)
	if err != nil {
		decided, undecided := p.interpretError(p.get, err)
		if undecided == nil && decided.Outcome == owner.Forbidden {
			return nil, &decided, nil
		}
		return nil, nil, fmt.Errorf("%w: %w", owner.ErrNotSent, err) // nothing was changed
	}
	switch {
	case was == nil:
		return nil, &owner.Answer{Outcome: owner.Absent}, nil
	}
	tag := p.tagAt.text(was)
	uid := p.uidAt.text(was)
	if p.conditional() && ifTag != "" && ifTag != tag || ifUID != "" && ifUID != uid {
		a := owner.Answer{Outcome: owner.Conflict}
		if r, err := p.show(key, was); err == nil {
			a.Resource = &r
		}
		return was, &a, nil
	}
	return was, nil, nil
}

// changeConflict returns the answer to a change after the service has answered ABORTED or FAILED_PRECONDITION. The
// current tag shows whether the resource has changed since or the service refused the change.
func (c *Client) changeConflict(
	ctx context.Context, p *plan, key backend.Key, ifTag string, decided owner.Answer,
) (owner.Answer, error) {
	now, err := c.fetch(ctx, p, key)
	switch {
	case err != nil:
		return owner.Answer{}, err
	case now == nil:
		return owner.Answer{Outcome: owner.Absent}, nil
	}
	if r, err := p.show(key, now); err == nil {
		decided.Resource = &r
	}
	if !p.conditional() || ifTag == "" || ifTag == p.tagAt.text(now) {
		decided.Outcome = owner.Refused
	}
	return decided, nil
}

// inside returns the fields of the resource that contain metadata. Masks list the paths of their own fields instead.
func (p *plan) inside() map[protoreflect.Name]bool {
	out := map[protoreflect.Name]bool{}
	for _, at := range []fieldAt{p.nameAt, p.tagAt, p.labelsAt, p.annotationsAt, p.descriptionAt} {
		if len(at) > 1 {
			out[at[0].Name()] = true
		}
	}
	return out
}

func (m *method) setMask(request protoreflect.Message, paths []string) {
	mask := m.maskAt.holder(request).Mutable(m.maskAt.last()).Message()
	f := mask.Descriptor().Fields().ByName("paths")
	if f == nil || !f.IsList() || f.Kind() != protoreflect.StringKind {
		return
	}
	list := mask.Mutable(f).List()
	for _, path := range paths {
		list.Append(protoreflect.ValueOfString(path))
	}
}

// done returns the answer to a write after which the resource has the state in m.
func (p *plan) done(key backend.Key, m protoreflect.Message) owner.Answer {
	r, err := p.show(key, m)
	if err != nil {
		return owner.Answer{Outcome: owner.Done} // the write was applied, but the resource cannot be shown
	}
	return owner.Answer{Outcome: owner.Done, Resource: &r}
}

// written returns the answer to a write that was applied. answer is nil if the service has not returned the resource.
func (c *Client) written(
	ctx context.Context, p *plan, w owner.Write, answer protoreflect.Message,
) (owner.Answer, error) {
	key := w.Resource.Key
	if answer == nil && !w.DryRun {
		return c.withResource(ctx, p, key, owner.Answer{Outcome: owner.Done}), nil
	}
	if answer == nil {
		return owner.Answer{Outcome: owner.Done}, nil
	}
	is, err := p.keyOf(answer)
	if err == nil && is != key && w.IfAbsent {
		return otherName(w, fmt.Sprintf("%s of the service chooses names: it has answered %s, and %s was asked for",
			p.create.Name(), shortText(is.String()), key)), nil
	}
	return p.done(key, answer), nil
}

// otherName returns the answer to a create after which the service has returned a resource with another name. If the
// create was applied, the answer is Done without a resource, because each repetition would create another resource.
func otherName(w owner.Write, message string) owner.Answer {
	if w.DryRun {
		return owner.Answer{Outcome: owner.Refused, Message: message}
	}
	return owner.Answer{Outcome: owner.Done, Message: message}
}

func (p *plan) newResource() protoreflect.Message { return newMessage(p.resource) }

// Delete implements [owner.Service].
func (c *Client) Delete(ctx context.Context, d owner.Delete) (owner.Answer, error) {
	p, err := c.plan(d.Kind)
	switch {
	case err != nil:
		return owner.Answer{}, err
	case p.remove == nil:
		return owner.Answer{}, c.unimplemented(p, "delete")
	case d.DryRun && !p.described().DryRun:
		return owner.Answer{}, c.unimplemented(p, "dry run")
	case p.checkKey(d.Key) != nil:
		return owner.Answer{Outcome: owner.Absent}, nil
	}
	was, refusal, err := c.current(ctx, p, d.Key, d.IfTag, d.IfUID)
	// The first attempt may have deleted what is absent now. A service that recognises the request by its id gives the
	// first answer again.
	repeated := refusal != nil && refusal.Outcome == owner.Absent && d.Resent && len(p.remove.requestAt) > 0
	if err != nil || refusal != nil && !repeated {
		return answerOf(refusal), err
	}
	before := owner.Answer{Outcome: owner.Done}
	if was != nil {
		before = p.done(d.Key, was)
	}
	if d.DryRun && len(p.remove.dryRunAt) == 0 {
		return before, nil
	}
	if before.Resource != nil && !before.Resource.DeletionRequestedAt.IsZero() {
		before.Outcome = owner.Waits
		return before, nil
	}
	request := p.remove.request().ProtoReflect()
	p.setKey(p.remove, request, d.Key)
	p.remove.tagAt.setText(request, d.IfTag)
	p.remove.identify(request, d.ID)
	if d.DryRun {
		p.remove.dryRunAt.set(request, protoreflect.ValueOfBool(true))
	}
	_, decided, err := c.send(ctx, p, p.remove, d.Key, request)
	switch {
	case err != nil:
		return owner.Answer{}, err
	case decided.Outcome == owner.Conflict:
		return c.changeConflict(ctx, p, d.Key, d.IfTag, decided)
	case decided.Outcome == owner.Exists, decided.Outcome == owner.Invalid:
		decided.Outcome = owner.Refused
		return decided, nil
	case decided.Outcome != owner.Done || d.DryRun || len(p.deletedAt) == 0:
		decided.Resource = before.Resource
		return decided, nil
	}
	now := c.withResource(ctx, p, d.Key, owner.Answer{Outcome: owner.Waits})
	if now.Resource == nil || now.Resource.DeletionRequestedAt.IsZero() {
		return before, nil
	}
	return now, nil // the service keeps what is deleted for a while
}
