package kit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// versionLabel is a label whose value differs in each version of a resource.
const versionLabel = "sluice-test"

// trial tests the promises with one kind of the service.
type trial struct {
	*run
	kind      owner.Kind
	namespace string
	specs     *generator
	// varies reports whether the service accepts different specs. It may accept only one of the generated specs.
	varies bool

	mu    sync.Mutex // guards all below
	made  map[backend.Key]bool
	names int
}

// key returns a key that no test has used.
func (t *trial) key() backend.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names++
	return t.track(t.prefix + strconv.Itoa(t.names))
}

// named returns the key with the given name. No other test may use this name.
func (t *trial) named(name string) backend.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.track(name)
}

// track returns the key with a name, and makes cleanup delete the resource. The caller holds mu.
func (t *trial) track(name string) backend.Key {
	key := backend.Key{Kind: t.kind.Name, Namespace: t.namespace, Name: name}
	t.made[key] = true
	return key
}

// desired returns a version of a resource, with only the parts that callers set. The contents of all versions differ.
func (t *trial) desired(key backend.Key, version int) owner.Resource {
	variant := 0
	if t.varies {
		variant = version
	}
	out := owner.Resource{
		Key: key, Spec: t.specs.spec(variant), WriteID: fmt.Sprintf("%s/%d", key.Name, version),
	}
	if !t.kind.NoLabels {
		out.Labels = map[string]string{versionLabel: "v" + strconv.Itoa(version)}
	}
	return out
}

// create creates the first version of a resource.
func (t *trial) create(ctx context.Context, key backend.Key) (*owner.Resource, error) {
	return done(t.Service.Write(ctx, owner.Write{Resource: t.desired(key, 1), IfAbsent: true}))
}

// fresh creates a resource with a key that no test has used.
func (t *trial) fresh(ctx context.Context) (*owner.Resource, error) { return t.create(ctx, t.key()) }

// replacing returns a request to write a version of a resource. If the kind supports conditions, the write is
// conditional on the tag of the version that it replaces.
func (t *trial) replacing(was *owner.Resource, version int) owner.Write {
	w := owner.Write{Resource: t.desired(was.Key, version)}
	if t.kind.Conditional {
		w.IfTag = was.Tag
	}
	return w
}

// update writes a version of a resource.
func (t *trial) update(ctx context.Context, was *owner.Resource, version int) (*owner.Resource, error) {
	return done(t.Service.Write(ctx, t.replacing(was, version)))
}

// get returns a resource; nil if it does not exist.
func (t *trial) get(ctx context.Context, key backend.Key) (*owner.Resource, error) {
	got, err := t.Service.Get(ctx, []backend.Key{key})
	if err != nil {
		return nil, fmt.Errorf("Get of %s: %w", key, err)
	}
	if len(got) != 1 {
		return nil, fmt.Errorf("Get of one key answered %d", len(got))
	}
	if got[0].Unreadable != "" {
		return nil, fmt.Errorf("Get says that %s is unreadable: %s", key, got[0].Unreadable)
	}
	return got[0].Resource, nil
}

// mustGet returns a resource. It returns an error if the resource does not exist.
func (t *trial) mustGet(ctx context.Context, key backend.Key) (*owner.Resource, error) {
	r, err := t.get(ctx, key)
	if err == nil && r == nil {
		err = fmt.Errorf("Get shows nothing under %s, which is there", key)
	}
	return r, err
}

// stays returns an error unless Get returns the resource unchanged. after describes, for the error, what happened
// before.
func (t *trial) stays(ctx context.Context, was *owner.Resource, after string) error {
	now, err := t.mustGet(ctx, was.Key)
	if err != nil {
		return fmt.Errorf("after %s: %w", after, err)
	}
	if what := difference(was, now); what != "" {
		return fmt.Errorf("%s has changed %s: %s", after, was.Key, what)
	}
	return nil
}

// done returns the resource in an answer. It returns an error if the outcome is not DONE.
func done(a owner.Answer, err error) (*owner.Resource, error) {
	if err := outcome(a, err, owner.Done); err != nil {
		return nil, err
	}
	if a.Resource == nil {
		return nil, errors.New("the answer DONE shows no resource")
	}
	return a.Resource, nil
}

// outcome returns an error unless the answer has one of the wanted outcomes.
func outcome(a owner.Answer, err error, want ...owner.Outcome) error {
	if err != nil {
		return err
	}
	if slices.Contains(want, a.Outcome) {
		return nil
	}
	var names []string
	for _, o := range want {
		names = append(names, o.String())
	}
	text := fmt.Sprintf("it answered %s where %s is right", a.Outcome, strings.Join(names, " or "))
	for _, v := range a.Violations {
		text += fmt.Sprintf("; %s: %s %s", v.Path, v.Rule, v.Message)
	}
	if a.Message != "" {
		text += "; " + a.Message
	}
	return errors.New(text)
}

// difference describes how two resources differ; "" if they are equal.
func difference(a, b *owner.Resource) string {
	var out []string
	add := func(field string, x, y any) {
		out = append(out, fmt.Sprintf("%s is %s and %s", field, short(x), short(y)))
	}
	if a.Key != b.Key {
		add("the key", a.Key, b.Key)
	}
	if a.Tag != b.Tag {
		add("the tag", a.Tag, b.Tag)
	}
	if a.UID != b.UID {
		add("the uid", a.UID, b.UID)
	}
	if a.WriteID != b.WriteID {
		add("the write id", a.WriteID, b.WriteID)
	}
	if what := contentDifference(a, b); what != "" {
		out = append(out, what)
	}
	return strings.Join(out, ", ")
}

// contentDifference describes how spec, metadata and status of two resources differ; "" if they are equal.
func contentDifference(a, b *owner.Resource) string {
	var out []string
	add := func(field string, x, y any) {
		out = append(out, fmt.Sprintf("%s is %s and %s", field, short(x), short(y)))
	}
	if !sameMap(a.Labels, b.Labels) {
		add("labels", a.Labels, b.Labels)
	}
	if !sameMap(a.Annotations, b.Annotations) {
		add("annotations", a.Annotations, b.Annotations)
	}
	if a.Description != b.Description {
		add("description", a.Description, b.Description)
	}
	if !a.DeletionRequestedAt.Equal(b.DeletionRequestedAt) {
		add("the requested deletion", a.DeletionRequestedAt, b.DeletionRequestedAt)
	}
	if !sameJSON(a.Spec, b.Spec) {
		add("the spec", string(a.Spec), string(b.Spec))
	}
	if !sameJSON(a.Status, b.Status) {
		add("the status", string(a.Status), string(b.Status))
	}
	return strings.Join(out, ", ")
}

func sameMap(a, b map[string]string) bool {
	return len(a) == 0 && len(b) == 0 || maps.Equal(a, b)
}

// sameJSON reports whether two texts are equal as JSON. An empty text equals an empty object.
func sameJSON(a, b []byte) bool {
	x, err := decoded(a)
	if err != nil {
		return false
	}
	y, err := decoded(b)
	return err == nil && reflect.DeepEqual(x, y)
}

func decoded(raw []byte) (map[string]any, error) {
	out := map[string]any{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return out, nil
	}
	err := json.Unmarshal(raw, &out)
	return out, err
}

// short formats a value for a message. Long values are cut.
func short(v any) string {
	const most = 200
	text := fmt.Sprintf("%q", fmt.Sprint(v))
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// parallel calls do n times at the same time, with the numbers from 0. It returns all errors, joined.
func parallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// list returns all resources of the kind, which it reads from List in pages.
func (t *trial) list(ctx context.Context, size int) (owner.Page, error) {
	const mostPages = 100_000
	var all owner.Page
	token := ""
	for range mostPages {
		page, err := t.Service.List(ctx, t.kind.Name, token, size)
		if err != nil {
			return all, fmt.Errorf("List: %w", err)
		}
		if n := len(page.Resources) + len(page.Unreadable); size > 0 && n > size {
			return all, fmt.Errorf("a page of List has %d resources, but at most %d were asked for", n, size)
		}
		all.Resources = append(all.Resources, page.Resources...)
		all.Unreadable = append(all.Unreadable, page.Unreadable...)
		if page.Next == "" {
			return all, nil
		}
		if page.Next == token {
			return all, fmt.Errorf("a page of List has its own token %q as the next one", token)
		}
		token = page.Next
	}
	return all, fmt.Errorf("List has not ended after %d pages", mostPages)
}

// eventually calls check repeatedly until check returns nil or the patience is over. It returns the last error.
func (t *trial) eventually(ctx context.Context, check func() error) error {
	end := time.Now().Add(t.Patience)
	for {
		err := check()
		if err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
		t.pause(ctx)
	}
}

// pause waits for a hundredth of Config.Patience.
func (t *trial) pause(ctx context.Context) {
	select {
	case <-time.After(t.Patience / 100):
	case <-ctx.Done():
	}
}

// cleanup deletes the resources of the last test, even if ctx is cancelled. It reports resources that cannot be deleted
// in a result.
func (t *trial) cleanup(ctx context.Context) {
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer end()
	t.mu.Lock()
	keys := slices.SortedFunc(maps.Keys(t.made), func(a, b backend.Key) int { return strings.Compare(a.Name, b.Name) })
	clear(t.made)
	t.mu.Unlock()
	if !t.kind.Writes {
		return
	}
	var left []string
	for _, key := range keys {
		a, err := t.Service.Delete(ctx, owner.Delete{Key: key})
		if err := outcome(a, err, owner.Done, owner.Absent, owner.Waits); err != nil {
			left = append(left, fmt.Sprintf("%s (%v)", key, err))
		}
	}
	if len(left) > 0 {
		result := Result{Kind: t.kind.Name, Promise: "cleanup", Says: "what the kit has made can be deleted"}
		t.report(result, errors.New(strings.Join(left, ", ")))
	}
}

// calibrate finds specs that the service accepts.
func (t *trial) calibrate(ctx context.Context) error {
	var described *descriptor.Kind
	for i := range t.Descriptors {
		if t.Descriptors[i].Name == t.kind.Name {
			described = &t.Descriptors[i]
		}
	}
	examples := t.Examples[t.kind.Name]
	t.namespace = t.namespaceOf(described, examples)
	if !t.kind.Writes {
		return nil
	}
	if described == nil && len(examples) == 0 {
		return errors.New("Describe has no SDL of the kind, and there is no example of it: give one")
	}
	t.specs = newGenerator(described, examples, t.random)
	first, err := t.accepted(ctx)
	if err != nil {
		return err
	}
	if !t.specs.canVary() {
		return nil
	}
	t.varies = true
	w := t.replacing(first, 2)
	a, err := t.Service.Write(ctx, w)
	if err != nil {
		return fmt.Errorf("a write of %s: %w", w.Resource.Spec, err)
	}
	t.varies = a.Outcome == owner.Done
	return nil
}

// namespaceOf returns the namespace of the resources of the run.
func (t *trial) namespaceOf(described *descriptor.Kind, examples []owner.Resource) string {
	switch {
	case described != nil && described.Scope == descriptor.Global:
		return ""
	case described == nil && len(examples) > 0 && examples[0].Namespace == "":
		return ""
	case t.Namespace != "":
		return t.Namespace
	case len(examples) > 0 && examples[0].Namespace != "":
		return examples[0].Namespace
	}
	return descriptor.DefaultNamespace
}

// accepted creates a resource. It tries different specs until the service accepts one of them.
func (t *trial) accepted(ctx context.Context) (*owner.Resource, error) {
	const attempts = 60
	key := t.key()
	var last owner.Answer
	var spec []byte
	for range attempts {
		w := owner.Write{Resource: t.desired(key, 1), IfAbsent: true}
		spec = w.Resource.Spec
		a, err := t.Service.Write(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("a create with the spec %s: %w", spec, err)
		}
		if a.Outcome != owner.Invalid {
			return done(a, nil)
		}
		last = a
		if !t.specs.avoid(a.Violations) {
			break
		}
	}
	return nil, fmt.Errorf("it accepts none of the generated specs, at last %s; give an example: %w",
		spec, outcome(last, nil, owner.Done))
}
