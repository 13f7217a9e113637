package kit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner"
)

const (
	// writers is the number of concurrent writers in tests.
	writers = 8
	// rounds is how often a test repeats steps that fail only sometimes.
	rounds = 5
	// longestName is the maximum length of a name in characters.
	longestName = 253
	// longestPart is the maximum length of the part of a name between two dots, in characters.
	longestPart = 63
	// largeBytes is the size of large annotations. The gateway accepts annotations of 256 KiB.
	largeBytes = 200 << 10
)

func writePromises() []promise {
	return []promise{
		{
			name: "create", says: "a create is DONE, and its answer is what Get shows",
			needs: []capability{writes}, test: create,
		},
		{
			name: "reads-own-writes", says: "Get shows each write and each delete as soon as it was acknowledged",
			needs: []capability{writes}, test: readsOwnWrites,
		},
		{
			name: "keeps-spec", says: "a spec that was shown is kept as it is when it is written again",
			needs: []capability{writes}, test: keepsSpec,
		},
		{
			name: "keeps-metadata", says: "labels, annotations and the description are kept, in any script, and replaced",
			needs: []capability{writes, labels}, test: keepsMetadata,
		},
		{
			name: "names", says: "a name of 253 characters with dots is kept, or refused by an outcome",
			needs: []capability{writes}, test: names,
		},
		{
			name: "large", says: "annotations of 200 KiB are kept, or refused by an outcome",
			needs: []capability{writes, annotations}, test: large,
		},
		{
			name: "write-id", says: "a resource has the id of the write that made it, and of no other one",
			needs: []capability{writes}, test: writeID,
		},
		{
			name: "write-repeated", says: "a write that is sent twice is made once, and its second answer shows its id",
			needs: []capability{writes, conditional}, test: writeRepeated,
		},
		{
			name: "uid", says: "changes keep the uid, and a new resource under an old name has another one",
			needs: []capability{writes}, test: uid,
		},
		{
			name: "invalid", says: "INVALID names the path of each violation, and nothing is written",
			needs: []capability{writes}, test: invalid,
		},
		{
			name: "dry-run", says: "dry_run judges as a write and a delete do, and changes nothing",
			needs: []capability{writes, dryRun}, test: dryRuns,
		},
	}
}

func create(ctx context.Context, t *trial) error {
	key := t.key()
	r, err := t.create(ctx, key)
	if err != nil {
		return err
	}
	if r.Key != key {
		return fmt.Errorf("the answer to a create of %s shows %s", key, r.Key)
	}
	if t.kind.Conditional && r.Tag == "" {
		return errors.New("the resource has no tag, though the kind is conditional")
	}
	return t.stays(ctx, r, "a create")
}

func readsOwnWrites(ctx context.Context, t *trial) error {
	return parallel(writers/2, func(int) error {
		key := t.key()
		for range rounds {
			r, err := t.create(ctx, key)
			if err != nil {
				return err
			}
			for version := 2; version < 4; version++ {
				if err := t.stays(ctx, r, "a write"); err != nil {
					return err
				}
				r, err = t.update(ctx, r, version)
				if err != nil {
					return err
				}
			}
			if err := t.stays(ctx, r, "the last write"); err != nil {
				return err
			}
			if err := t.remove(ctx, r); err != nil {
				return err
			}
			now, err := t.get(ctx, key)
			if err != nil {
				return err
			}
			if now != nil {
				return fmt.Errorf("Get shows %s after its delete was acknowledged", key)
			}
		}
		return nil
	})
}

func keepsSpec(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	again := t.replacing(r, 2)
	again.Resource.Spec = r.Spec
	next, err := done(t.Service.Write(ctx, again))
	if err != nil {
		return fmt.Errorf("a write of the spec that the service has shown: %w", err)
	}
	if !sameJSON(r.Spec, next.Spec) {
		return fmt.Errorf("the spec %s was shown, and is %s after it was written", r.Spec, next.Spec)
	}
	return nil
}

func keepsMetadata(ctx context.Context, t *trial) error {
	const text = "Grüße, 東京, \U0001F600, \"quoted\"\n<&>\t\u2028"
	want := t.desired(t.key(), 1)
	want.Labels["example.org/team"] = "a.b_c-d"
	if !t.kind.NoAnnotations {
		want.Annotations = map[string]string{"example.org/note": text, "empty": ""}
	}
	if !t.kind.NoDescription {
		want.Description = text
	}
	r, err := done(t.Service.Write(ctx, owner.Write{Resource: want, IfAbsent: true}))
	if err != nil {
		return err
	}
	if what := metadataDifference(&want, r); what != "" {
		return fmt.Errorf("written and shown: %s", what)
	}
	if err := t.stays(ctx, r, "a create"); err != nil {
		return err
	}
	replaced, err := t.update(ctx, r, 2)
	if err != nil {
		return err
	}
	if len(replaced.Annotations) > 0 || replaced.Description != "" || len(replaced.Labels) != 1 {
		return errors.New("a write without annotations and description does not remove them")
	}
	return nil
}

// metadataDifference describes how the metadata that callers set differs between two resources; "" if it is equal.
func metadataDifference(a, b *owner.Resource) string {
	x, y := *a, *b
	x.Spec, x.Status = nil, nil
	y.Spec, y.Status = nil, nil
	return contentDifference(&x, &y)
}

// takenOrRefused writes a resource. It returns an error unless the service stores the resource unchanged or refuses the
// write by an outcome. A refusal is returned as a [skip].
func (t *trial) takenOrRefused(ctx context.Context, want owner.Resource) error {
	a, err := t.Service.Write(ctx, owner.Write{Resource: want, IfAbsent: true})
	if err := outcome(a, err, owner.Done, owner.Invalid, owner.Refused); err != nil {
		return err
	}
	if a.Outcome != owner.Done {
		return skip("the service answers " + outcome(a, nil, owner.Done).Error())
	}
	if a.Resource == nil {
		return errors.New("the answer DONE shows no resource")
	}
	if what := metadataDifference(&want, a.Resource); what != "" {
		return fmt.Errorf("written and shown: %s", what)
	}
	return t.stays(ctx, a.Resource, "a create")
}

func names(ctx context.Context, t *trial) error {
	name := t.prefix
	for len(name) < longestName {
		name += strings.Repeat("x", min(longestPart-len(t.prefix), longestName-len(name)))
		if len(name) < longestName-1 {
			name += "."
		}
	}
	return t.takenOrRefused(ctx, t.desired(t.named(name), 1))
}

func large(ctx context.Context, t *trial) error {
	want := t.desired(t.key(), 1)
	want.Annotations = map[string]string{"example.org/large": strings.Repeat("0123456789", largeBytes/10)}
	return t.takenOrRefused(ctx, want)
}

func writeID(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	if r.WriteID == "" {
		return skip("the service does not keep write_id")
	}
	first := t.desired(r.Key, 1).WriteID
	if r.WriteID != first {
		return fmt.Errorf("a resource of the write %q says %q", first, r.WriteID)
	}
	if err := t.stays(ctx, r, "a create"); err != nil {
		return err
	}
	next, err := t.update(ctx, r, 2)
	if err != nil {
		return err
	}
	if next.WriteID == first {
		return fmt.Errorf("a resource says that the write %q made it, after another one", first)
	}
	without := t.replacing(next, 3)
	without.Resource.WriteID = ""
	last, err := done(t.Service.Write(ctx, without))
	if err != nil {
		return err
	}
	if last.WriteID != "" {
		return fmt.Errorf("a resource says that the write %q made it, after one without an id", last.WriteID)
	}
	return t.stays(ctx, last, "a write without an id")
}

func writeRepeated(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	w := t.replacing(r, 2)
	first, err := done(t.Service.Write(ctx, w))
	if err != nil {
		return err
	}
	second, err := t.Service.Write(ctx, w)
	if err := outcome(second, err, owner.Conflict, owner.Done); err != nil {
		return err
	}
	if second.Resource == nil {
		return fmt.Errorf("the answer %s shows no resource", second.Outcome)
	}
	if what := difference(first, second.Resource); what != "" {
		return fmt.Errorf("the first and the second answer: %s", what)
	}
	return t.stays(ctx, first, "a repeated write")
}

func uid(ctx context.Context, t *trial) error {
	r, err := t.fresh(ctx)
	if err != nil {
		return err
	}
	if r.UID == "" {
		return skip("the service has no uids")
	}
	next, err := t.update(ctx, r, 2)
	if err != nil {
		return err
	}
	if next.UID != r.UID {
		return fmt.Errorf("a change made the uid %q of %q", next.UID, r.UID)
	}
	if err := t.remove(ctx, next); err != nil {
		return err
	}
	again, err := t.create(ctx, r.Key)
	if err != nil {
		return err
	}
	if again.UID == r.UID {
		return fmt.Errorf("a resource that was created after another one was deleted has its uid %q", r.UID)
	}
	return nil
}

func invalid(ctx context.Context, t *trial) error {
	refused := 0
	for _, spec := range t.specs.broken() {
		want := t.desired(t.key(), 1)
		want.Spec = spec
		a, err := t.Service.Write(ctx, owner.Write{Resource: want, IfAbsent: true})
		if err != nil {
			return fmt.Errorf("a create with the spec %s ends without an outcome: %w", spec, err)
		}
		if a.Outcome != owner.Invalid {
			continue
		}
		refused++
		if len(a.Violations) == 0 {
			return fmt.Errorf("INVALID has no violations for the spec %s", spec)
		}
		for _, v := range a.Violations {
			if v.Path == "" || v.Message == "" && v.Rule == "" {
				return fmt.Errorf("a violation of the spec %s has no path or no message: %+v", spec, v)
			}
		}
		now, err := t.get(ctx, want.Key)
		if err != nil {
			return err
		}
		if now != nil {
			return fmt.Errorf("a create was INVALID, and %s is there", want.Key)
		}
	}
	if refused == 0 {
		return skip("the service refuses no spec; the gateway judges by the SDL before it asks")
	}
	return nil
}

// broken returns specs that violate the SDL.
func (g *generator) broken() (out [][]byte) {
	const most = 12
	if g.kind == nil || g.kind.Spec == nil {
		return nil
	}
	with := func(change func(spec map[string]any)) {
		spec, err := decoded(g.spec(0))
		if err != nil || len(out) == most {
			return
		}
		change(spec)
		raw, err := json.Marshal(spec)
		if err == nil {
			out = append(out, raw)
		}
	}
	for i := range g.kind.Spec.Fields {
		f := &g.kind.Spec.Fields[i]
		if f.Required {
			with(func(spec map[string]any) { delete(spec, f.Name) })
		}
		with(func(spec map[string]any) {
			spec[f.Name] = "sluice test, no value of this field"
			if f.Type == descriptor.TypeString {
				spec[f.Name] = 7
			}
		})
	}
	return out
}

func dryRuns(ctx context.Context, t *trial) error {
	key := t.key()
	a, err := t.Service.Write(ctx, owner.Write{Resource: t.desired(key, 1), IfAbsent: true, DryRun: true})
	if err := outcome(a, err, owner.Done); err != nil {
		return fmt.Errorf("a create: %w", err)
	}
	now, err := t.get(ctx, key)
	if err != nil {
		return err
	}
	if now != nil {
		return errors.New("a create with dry_run has created it")
	}
	r, err := t.create(ctx, key)
	if err != nil {
		return err
	}
	a, err = t.Service.Write(ctx, owner.Write{Resource: t.desired(key, 2), IfAbsent: true, DryRun: true})
	if err := outcome(a, err, owner.Exists); err != nil {
		return fmt.Errorf("a create of what is there: %w", err)
	}
	update := t.replacing(r, 2)
	update.DryRun = true
	a, err = t.Service.Write(ctx, update)
	if err := outcome(a, err, owner.Done); err != nil {
		return fmt.Errorf("an update: %w", err)
	}
	if err := t.stays(ctx, r, "an update with dry_run"); err != nil {
		return err
	}
	a, err = t.Service.Delete(ctx, owner.Delete{Key: key, DryRun: true})
	if err := outcome(a, err, owner.Done, owner.Waits); err != nil {
		return fmt.Errorf("a delete: %w", err)
	}
	if err := t.stays(ctx, r, "a delete with dry_run"); err != nil {
		return err
	}
	a, err = t.Service.Delete(ctx, owner.Delete{Key: t.key(), DryRun: true})
	if err := outcome(a, err, owner.Absent); err != nil {
		return fmt.Errorf("a delete of what is absent: %w", err)
	}
	if !t.kind.Conditional {
		return nil
	}
	if _, err := t.update(ctx, r, 3); err != nil {
		return err
	}
	a, err = t.Service.Write(ctx, update)
	if err := outcome(a, err, owner.Conflict); err != nil {
		return fmt.Errorf("an update with the tag of an older version: %w", err)
	}
	return nil
}
