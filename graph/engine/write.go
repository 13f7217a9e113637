package engine

import (
	"strconv"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
)

// The functions of this file append a value to the answer: those of a run that return
// ([]byte, bool) return false if the value is null. What they have appended does not count then,
// and their caller cuts the answer back. Null that is not allowed makes the nearest value around
// it null that may be (GraphQL, October 2021, section 6.4.4); all other fields are still written,
// so that all errors are reported.
//
//	object            the fields of a selection, one after the other
//	  opScalar        a span of the body; most fields are, so object does it by itself
//	  value           any other field, by its op code
//	    bodyField     other fields of a body
//	    ...
//	      below       the object below a field: object again

// source has what the fields of an object are written from: the fields that the object's type needs
// are set.
type source struct {
	// item is a resource, and table the object of its body.
	item  *item
	table body.Table
	// page is a page, and index the index of an edge of it.
	page  *page
	index int
	// written is the result of a mutation, change an event of a stream.
	written *written
	change  *change.Change
	// warning is a warning of written.
	warning *failure.Warning
	// summary is a summary, group the index of a group in it, and index the index of a key of the group.
	summary *query.Summary
	group   int
	// namespaces is a page of namespaces, group the index of one, and index the index of a count.
	namespaces *query.NamespacePage
	// key and value of an entry.
	key, value string
}

// object appends an object.
func (r *run) object(buf []byte, o *object, src *source) ([]byte, bool) {
	if len(o.fields) == 0 {
		return append(buf, "{}"...), true
	}
	ok := true
	for i := range o.fields {
		f := &o.fields[i]
		buf = append(buf, f.prefix...)
		if n := len(buf) + r.spent.errorBytes; n > r.spent.until { // [run.room], which is not inlined
			buf = r.grow(f, buf, n)
		}
		if f.op == opScalar { // as most fields are
			b := src.item.body
			s := b.At(src.table, f.slot)
			if s.IsZero() && f.otherwise != nil {
				buf = append(buf, f.otherwise...)
				continue
			}
			if s.IsZero() {
				buf = append(buf, "null"...)
				ok = ok && !f.nonNull
				continue
			}
			raw := b.Bytes(s)
			if len(raw) > longValue {
				buf = r.roomFor(f, buf, len(raw))
			}
			if s.Ready() {
				buf = append(buf, raw...)
			} else {
				buf = appendScalar(buf, raw)
			}
			continue
		}
		at := len(buf)
		var some bool
		if buf, some = r.value(buf, f, src); !some {
			buf = append(buf[:at], "null"...)
			ok = ok && !f.nonNull
		}
	}
	return append(buf, '}'), ok
}

// value appends the value of a field.
func (r *run) value(buf []byte, f *field, src *source) ([]byte, bool) {
	switch f.op {
	case opConst:
		return append(buf, f.constant...), true
	case opObject, opObjects, opEnum, opFloat, opTime, opScalars, opMap:
		return r.bodyField(buf, f, src)
	case opID, opSubKind, opAPIVersion, opMetadata, opManifest, opSpecJSON, opStatusJSON, opConditions, opAllowed, opRef, opRefs, opInverse, opDependencies, opDependents, opBlockedBy:
		return r.resourceField(buf, f, src.item)
	case opNamespace, opName, opUID, opRevision, opGeneration, opLabels, opAnnotations, opDescription, opCreatedAt, opUpdatedAt, opExpiresAt, opDeletionRequestedAt, opFinalizers, opUpdatedBy:
		return r.metadataField(buf, f, src.item.body)
	case opKey:
		return appendText(buf, src.key), true
	case opValue:
		return appendText(buf, src.value), true
	case opEdges, opNodes, opNode:
		if src.namespaces != nil {
			return r.namespaceItems(buf, f, src)
		}
		return r.pageItems(buf, f, src)
	case opNamespaceName, opNamespaceCounts, opCountKind, opCount:
		return r.namespaceField(buf, f, src)
	case opPageInfo, opTotalCount, opHiddenCount, opPageChangeCursor, opCursor, opHasNextPage, opHasPreviousPage, opStartCursor, opEndCursor:
		return r.pageField(buf, f, src)
	case opOtherID, opOtherKind, opOtherNamespace, opOtherName, opOtherPath, opOtherState, opOtherGuarded, opOther:
		return r.dependencyField(buf, f, src)
	case opChangeType, opChangeCursor, opChangeRevision, opChangeID, opChanged:
		return r.changeField(buf, f, src.change)
	case opGroups, opGroupKeys, opGroupCount, opGroupPath, opGroupValue:
		return r.summaryField(buf, f, src)
	case opPreviewKind, opPreviewUID:
		return previewField(buf, f, src.item)
	case opWarningCode, opMessage, opPlace, opPlaceText:
		return r.warningField(buf, f, src)
	}
	return r.payloadField(buf, f, src.written)
}

// below appends the object below a field.
func (r *run) below(buf []byte, f *field, src *source) ([]byte, bool) {
	r.push(f)
	buf, ok := r.object(buf, f.sub, src)
	r.pop()
	return buf, ok
}

// resource appends a resource below a field, from its first link on.
func (r *run) resource(buf []byte, f *field, it *item) ([]byte, bool) {
	it.at = 0
	return r.resourceOn(buf, f, it)
}

// resourceOn appends a resource of which another selection may have been written already: it goes on
// with the item's next link.
func (r *run) resourceOn(buf []byte, f *field, it *item) ([]byte, bool) {
	r.count(f, 1)
	r.push(f)
	buf, ok := r.object(buf, f.on(it.kind), &source{item: it})
	r.pop()
	return buf, ok
}

// null reports an error of a field and returns null.
func (r *run) null(buf []byte, f *field, err error) ([]byte, bool) {
	r.failed(err, f)
	return buf, false
}

// bodyField appends a field of an object of a body.
func (r *run) bodyField(buf []byte, f *field, src *source) ([]byte, bool) {
	b := src.item.body
	s := b.At(src.table, f.slot)
	if s.IsZero() {
		return append(buf, f.otherwise...), f.otherwise != nil
	}
	switch f.op {
	case opObject:
		return r.below(buf, f, &source{item: src.item, table: b.Object(s)})
	case opObjects:
		return r.objects(buf, f, src.item, s)
	case opEnum:
		return appendEnum(buf, f, b.Bytes(s)), true
	case opFloat:
		return appendFloat(buf, b.Bytes(s)), true
	case opTime:
		out, ok := appendStoredTime(buf, b.Bytes(s))
		if !ok {
			r.engine.badTime(src.item.kind.Name)
			if f.nonNull {
				return r.null(buf, f, failure.Of(backend.ErrUnreadable, b.Stored.Key))
			}
		}
		return out, ok
	case opMap:
		return r.entries(buf, f, sortedEntries(b, s))
	}
	return appendScalars(buf, f, b, s), true
}

// appendScalars appends a list of scalars of a body, an empty one if it is absent.
func appendScalars(buf []byte, f *field, b *body.Body, s body.Span) []byte {
	if s.Ready() && f.enum == nil && !s.IsZero() {
		return append(buf, b.Bytes(s)...)
	}
	buf = append(buf, '[')
	first := true
	for raw := range b.Scalars(s) {
		if !first {
			buf = append(buf, ',')
		}
		first = false
		switch {
		case f.enum != nil:
			buf = appendEnum(buf, f, raw)
		default:
			buf = appendScalar(buf, raw)
		}
	}
	return append(buf, ']')
}

// objects appends a list of objects of a body.
func (r *run) objects(buf []byte, f *field, it *item, s body.Span) ([]byte, bool) {
	r.push(f)
	defer r.pop()
	buf = append(buf, '[')
	ok := true
	for i, t := range it.body.Objects(s) {
		if i > 0 {
			buf = append(buf, ',')
		}
		r.pushIndex(i)
		at := len(buf)
		var some bool
		if buf, some = r.object(buf, f.sub, &source{item: it, table: t}); !some {
			buf = append(buf[:at], "null"...)
			ok = ok && !f.elementNonNull
		}
		r.pop()
	}
	return append(buf, ']'), ok
}

// entry of a map, a label or an annotation.
type entry struct{ key, value string }

// entries appends a map as a list of its entries.
func (r *run) entries(buf []byte, f *field, list []entry) ([]byte, bool) {
	buf = append(buf, '[')
	for i, e := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf, _ = r.object(buf, f.sub, &source{key: e.key, value: e.value})
	}
	return append(buf, ']'), true
}

// text appends a string, null if s is nil.
func (r *run) text(buf []byte, s *string) ([]byte, bool) {
	if s == nil {
		return buf, false
	}
	return appendText(buf, *s), true
}

// appendTime appends a time; false means that it is zero.
func appendTime(buf []byte, t time.Time) ([]byte, bool) {
	if t.IsZero() {
		return buf, false
	}
	buf = t.AppendFormat(append(buf, '"'), time.RFC3339Nano)
	return append(buf, '"'), true
}

// appendStoredTime appends a stored time in UTC; false means that it does not have the form of a time.
func appendStoredTime(buf, raw []byte) ([]byte, bool) {
	if raw[0] != '"' {
		return buf, false
	}
	t, err := descriptor.ParseTime(string(body.Unquote(nil, raw)))
	if err != nil {
		return buf, false
	}
	buf = t.AppendFormat(append(buf, '"'), time.RFC3339Nano)
	return append(buf, '"'), true
}

// appendScalar appends a stored scalar whose form may not be the API's.
func appendScalar(buf, raw []byte) []byte {
	switch {
	case raw[0] == '"':
		return appendText(buf, body.Unquote(nil, raw))
	case string(raw) == "-0":
		return append(buf, '0')
	}
	return append(buf, raw...)
}

// appendEnum appends the name of a stored value of an enum, or the value itself
// if a newer gateway stored one that this gateway has no name for.
func appendEnum(buf []byte, f *field, raw []byte) []byte {
	if name, ok := f.enum[string(raw[1:len(raw)-1])]; ok {
		buf = append(append(buf, '"'), name...)
		return append(buf, '"')
	}
	text := body.Unquote(nil, raw)
	if name, ok := f.enum[string(text)]; ok {
		text = []byte(name)
	}
	return appendText(buf, text)
}

// appendFloat appends a stored number in the shortest form.
func appendFloat(buf, raw []byte) []byte {
	x, _ := strconv.ParseFloat(string(raw), 64) // the scan has read it
	return strconv.AppendFloat(buf, x, 'g', -1, 64)
}

// hexDigits are the digits of escapes.
const hexDigits = "0123456789ABCDEF"

// appendText appends a string as gqlgen does: with no more escapes than JSON
// needs (RFC 8259 section 7).
func appendText[T string | []byte](buf []byte, s T) []byte {
	buf = append(buf, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '\\' && c != '"' {
			continue
		}
		buf = append(buf, s[start:i]...)
		switch c {
		case '\t':
			buf = append(buf, `\t`...)
		case '\r':
			buf = append(buf, `\r`...)
		case '\n':
			buf = append(buf, `\n`...)
		case '\\', '"':
			buf = append(buf, '\\', c)
		default:
			buf = append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
		}
		start = i + 1
	}
	buf = append(buf, s[start:]...)
	return append(buf, '"')
}
