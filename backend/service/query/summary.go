package query

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/page"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// SummaryRequest is a request for the numbers of a kind's resources, grouped by the values of keys.
type SummaryRequest struct {
	Kind string
	// Namespace is the namespace to count; nil for all.
	Namespace *string
	// Filter and FieldNames have the same meaning as in [ListRequest].
	Filter     any
	FieldNames failure.FieldNames
	// By has keys: API paths of filterable fields that are not lists, labels ("labels.team"), or "namespace".
	By []string
	// Conditions are types of conditions whose statuses are also keys. By and Conditions together have at most
	// [MaxKeys] elements.
	Conditions []string
}

// MaxKeys is the maximum number of keys of a summary.
const MaxKeys = 5

// Summary has the number of resources in each group.
type Summary struct {
	// Paths are the paths of the keys: By, followed by "conditions.TYPE" for each of Conditions.
	Paths []string
	// Groups are ordered by their values, with nulls first. No group is empty.
	Groups []Group

	page *Page
}

// Group is a group of resources with the same values of all keys.
type Group struct {
	// Values has the value of each key, in the order of Paths. A value is nil if the resources have none.
	Values []*string
	Count  int
}

// Summary counts the resources of a kind by the values of keys, in one state of the store. With one key, no filter and
// no namespace, it takes the numbers from the index, and the cost depends only on the number of groups. Otherwise it
// reads each matching resource.
func (r *Reader) Summary(ctx context.Context, req SummaryRequest) (*Summary, error) {
	t := r.lister(ctx)
	var q connection
	counted := ListRequest{
		Kind:       req.Kind,
		Namespace:  req.Namespace,
		Filter:     req.Filter,
		FieldNames: req.FieldNames,
	}
	served, err := t.prepare(ctx, &counted, &q)
	if err != nil {
		return nil, err
	}
	keys, err := summaryKeys(q.Kind, req)
	if err != nil {
		return nil, err
	}
	p := &Page{reader: r, query: &q}
	if served != nil {
		p.view = t.view
	}
	var groups map[string]*int
	if served != nil && len(keys) == 1 && q.Namespace == "" && q.Filter.Empty() && !q.Scoped() &&
		keys[0].Attribute != filter.Namespace {
		groups, err = lengths(ctx, served, t.view.Now(), keys[0].GroupKey)
	} else {
		var read *page.Read
		read, err = p.read(ctx, plan.Want{Count: true, By: keys.attributes()})
		groups = read.Groups
	}
	if err != nil {
		return nil, err
	}
	if len(groups) > page.MaxGroups {
		return nil, failure.Limited("by", "more than %d groups; filter, or leave out a key that has many values", page.MaxGroups)
	}
	if err := budget.From(ctx).Hold(ctx, heldGroups(groups, len(keys))); err != nil {
		return nil, page.Failure(err, backend.Key{})
	}
	out, err := keys.summary(groups)
	if err == nil {
		out.page = p
	}
	return out, err
}

// Unreadable returns the result of [Page.Unreadable] for the resources that were counted.
func (s *Summary) Unreadable(ctx context.Context) (int, error) { return s.page.Unreadable(ctx) }

// The approximate memory, in bytes, of a group and of one of its values without the text.
const (
	groupBytes = 128
	valueBytes = 32
)

// heldGroups returns approximately how many bytes the groups use until the answer is written.
func heldGroups(groups map[string]*int, keys int) int {
	n := len(groups) * (groupBytes + keys*valueBytes)
	for group := range groups {
		n += 2 * len(group) // as a key and as the texts of its values
	}
	return n
}

// lengths counts resources by one key. It seeks from each value in the index to the next.
func lengths(ctx context.Context, k *index.Kind, now time.Time, by filter.GroupKey) (map[string]*int, error) {
	groups, all := map[string]*int{}, k.Len(index.Run{})-k.Unreadable(index.Run{})
	rest := index.Run{Index: by.Attribute}
	if by.Prefix != nil {
		rest.Start, rest.End = by.Prefix, backend.PrefixEnd(by.Prefix)
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Steps, budget.Scan); err != nil {
		return nil, err
	}
	for len(groups) <= page.MaxGroups {
		var value []byte
		k.Scan(rest, false, func(v string, _ *index.Entry) bool {
			value = []byte(v)
			return false
		})
		if value == nil {
			break
		}
		if err := spent.Spend(budget.Steps, budget.Run); err != nil {
			return nil, err
		}
		one := index.Run{Index: by.Attribute, Start: value, End: backend.PrefixEnd(value)}
		n := k.Len(one)
		groups[string(append([]byte{filter.KeyValue}, value[len(by.Prefix):]...))], all = &n, all-n
		rest.Start = one.End
	}
	if all > 0 {
		groups[string([]byte{filter.KeyNull})] = &all
	}
	var values filter.Values
	for e := range k.Expired(now) {
		if err := spent.Spend(budget.Steps, budget.Looked); err != nil {
			return nil, err
		}
		values.Read(k, e)
		group := string(values.AppendKey(nil, by))
		if n := groups[group]; n != nil {
			if *n--; *n == 0 {
				delete(groups, group)
			}
		}
	}
	return groups, nil
}

// summaryKey is a key of a summary.
type summaryKey struct {
	filter.GroupKey
	path string
	// field is the field whose values are the key; nil if the values are strings.
	field *descriptor.Field
}

type summaryKeyList []summaryKey

// summaryKeys returns the keys of a request, or an error if one is not valid.
func summaryKeys(k *kind.Kind, req SummaryRequest) (out summaryKeyList, err error) {
	if len(req.By)+len(req.Conditions) > MaxKeys {
		return nil, failure.Limited("by", "by and conditions have more than %d keys together", MaxKeys)
	}
	for i, path := range req.By {
		stored := k.StoredPath(path)
		key := summaryKey{path: path, GroupKey: filter.GroupKey{Attribute: stored}}
		label, isLabel := strings.CutPrefix(path, "labels.")
		indexed := k.IndexOf(stored)
		at := failure.At("by").Element(i)
		switch {
		case path == filter.Namespace && k.Scope == descriptor.Global:
			return nil, refuse(at, "kind %s is GLOBAL: its resources have no namespace", k.Name)
		case path == filter.Namespace:
		case isLabel:
			var v kind.Violations
			if v.LabelKey(at, label); v.Err(backend.Key{Kind: k.Name}) != nil {
				return nil, refuse(at, "%q is no key of a label", failure.Shorten(label))
			}
			key.GroupKey = filter.GroupKey{Attribute: kind.LabelIndex, Prefix: backend.AppendString(nil, label)}
		case indexed == nil || k.APIPath(stored) != path:
			return nil, refuse(at, "%q is no filterable field of kind %s; accepted are namespace, labels.KEY and the paths that the field filterableFields of the kind lists", failure.Shorten(path), k.Name)
		case indexed.Many:
			return nil, refuse(at, "%q may have several values in one resource; only fields with one value are accepted", path)
		default:
			key.field = k.IndexField(indexed)
		}
		out = append(out, key)
	}
	for i, typ := range req.Conditions {
		at := failure.At("conditions").Element(i)
		switch {
		case !k.HasConditions():
			return nil, refuse(at, "resources of kind %s have no conditions", k.Name)
		case typ == "" || len(typ) > filter.MaxConditionType:
			return nil, refuse(at, "1 to %d characters are accepted", filter.MaxConditionType)
		}
		out = append(
			out,
			summaryKey{
				path:     kind.ConditionIndex + "." + typ,
				GroupKey: filter.GroupKey{Attribute: kind.ConditionIndex, Prefix: backend.AppendString(nil, typ)},
			},
		)
	}
	return out, nil
}

// refuse returns BAD_USER_INPUT for the key at a path of the request.
func refuse(at *failure.Path, format string, args ...any) error {
	return failure.BadInput(at.Text(failure.APINames), format, args...)
}

// attributes returns the keys in the form for reads. The result is not nil.
func (l summaryKeyList) attributes() []filter.GroupKey {
	out := make([]filter.GroupKey, len(l))
	for i, k := range l {
		out[i] = k.GroupKey
	}
	return out
}

// summary returns the groups with their values as texts.
func (l summaryKeyList) summary(groups map[string]*int) (*Summary, error) {
	out := &Summary{}
	for _, k := range l {
		out.Paths = append(out.Paths, k.path)
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		g, rest := Group{Count: *groups[group]}, []byte(group)
		for _, k := range l {
			var text *string
			var err error
			if text, rest, err = k.text(rest); err != nil {
				return nil, failure.Of(err, backend.Key{})
			}
			g.Values = append(g.Values, text)
		}
		out.Groups = append(out.Groups, g)
	}
	return out, nil
}

// text decodes the first value of a group; nil if there is no value.
func (k *summaryKey) text(group []byte) (text *string, rest []byte, err error) {
	if group[0] == filter.KeyNull {
		return nil, group[1:], nil
	}
	if rest, err = backend.SkipElement(group[1:]); err != nil {
		return nil, nil, err
	}
	of := k.field
	if of == nil {
		of = &descriptor.Field{Type: descriptor.TypeString}
	}
	value, err := kind.DecodeValue(of, group[1:])
	return &value, rest, err
}
