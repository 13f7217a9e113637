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

// A writer appends a value to the answer. If it returns false, the value is null, and the caller drops the bytes that
// the writer has appended. If the schema does not allow null, the nearest enclosing value that may be null becomes
// null (GraphQL, October 2021, section 6.4.4). The other fields are still written, so that all errors are reported.
//
//	object            the fields of a selection, one after the other
//	  opScalar        a span of the body; most fields are, so object does it by itself
//	  value           any other field, by its op code
//	    bodyField     other fields of a body
//	    ...
//	      below       the object below a field: object again

// source is the data of the fields of an object.
type source struct {
	// item is a resource, table its body or an object in it.
	item  *item
	table body.Table
	// page is a page, index an edge of it.
	page  *page
	index int
	// written is the result of a mutation, change an event of a stream.
	written *written
	change  *change.Change
	// warning is a warning of a mutation.
	warning *failure.Warning
	// summary is a summary, group the index of a group in it, and index that of a key.
	summary *query.Summary
	group   int
	// namespaces is a page of namespaces, group the index of one, and index that of a count.
	namespaces *query.NamespacePage
	// key and value are of an entry of a map.
	key, value string
}

// object writes an object.
func (r *run) object(buf []byte, o *object, src *source) ([]byte, bool) {
	if len(o.fields) == 0 {
		return append(buf, "{}"...), true
	}
	ok := true
	for i := range o.fields {
		f := &o.fields[i]
		buf = append(buf, f.prefix...)
		if n := len(buf) + r.spent.errors; n > r.spent.until { // as in [run.room], which is not inlined
			buf = r.grow(f, buf, n)
		}
		if f.op == opScalar { // most fields
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
				buf = r.room(f, buf, len(raw))
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

// value writes the value of a field.
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
	case opPageInfo, opTotalCount, opHiddenCount, opUnreadableCount, opPageChangeCursor, opCursor, opHasNextPage, opHasPreviousPage, opStartCursor, opEndCursor:
		return r.pageField(buf, f, src)
	case opOtherID, opOtherKind, opOtherNamespace, opOtherName, opOtherPath, opOtherState, opOtherGuarded, opOther:
		return r.dependencyField(buf, f, src)
	case opChangeType, opChangeCursor, opChangeRevision, opChangeID, opChanged:
		return r.changeField(buf, f, src.change)
	case opUnreadableSummary, opGroups, opGroupKeys, opGroupCount, opGroupPath, opGroupValue:
		return r.summaryField(buf, f, src)
	case opPreviewKind, opPreviewUID:
		return previewField(buf, f, src.item)
	case opWarningCode, opMessage, opPlace, opPlaceText:
		return r.warningField(buf, f, src)
	}
	return r.payloadField(buf, f, src.written)
}

// below writes the object below a field.
func (r *run) below(buf []byte, f *field, src *source) ([]byte, bool) {
	r.push(f)
	buf, ok := r.object(buf, f.sub, src)
	r.pop()
	return buf, ok
}

// list writes a list of n objects, none of which can be null; element returns the data of one.
func (r *run) list(buf []byte, f *field, n int, element func(i int) source) []byte {
	buf = append(buf, '[')
	for i := range n {
		if i > 0 {
			buf = append(buf, ',')
		}
		src := element(i)
		buf, _ = r.object(buf, f.sub, &src)
	}
	return append(buf, ']')
}

// resource writes a resource below a field.
func (r *run) resource(buf []byte, f *field, it *item) ([]byte, bool) {
	it.at = 0
	return r.resourceOn(buf, f, it)
}

// resourceOn writes a resource some of whose links may have been written already.
func (r *run) resourceOn(buf []byte, f *field, it *item) ([]byte, bool) {
	r.count(f, 1)
	r.push(f)
	buf, ok := r.object(buf, f.on(it.kind), &source{item: it})
	r.pop()
	return buf, ok
}

// null adds an error of a field, whose value is null.
func (r *run) null(buf []byte, f *field, err error) ([]byte, bool) {
	r.failed(err, f)
	return buf, false
}

// bodyField writes a field of an object of a body.
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

// appendScalars writes a list of scalars of a body; an absent one is empty.
func appendScalars(buf []byte, f *field, b *body.Body, s body.Span) []byte {
	if s.Ready() && f.enum == nil && !s.IsZero() {
		return append(buf, b.Bytes(s)...)
	}
	buf = append(buf, '[')
	for raw := range b.Scalars(s) {
		if buf[len(buf)-1] != '[' {
			buf = append(buf, ',')
		}
		if f.enum != nil {
			buf = appendEnum(buf, f, raw)
		} else {
			buf = appendScalar(buf, raw)
		}
	}
	return append(buf, ']')
}

// objects writes a list of objects of a body.
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

func (r *run) entries(buf []byte, f *field, list []entry) ([]byte, bool) {
	buf = append(buf, '[')
	var src source // one for all: a page has hundreds of labels
	for i := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		src.key, src.value = list[i].key, list[i].value
		buf, _ = r.object(buf, f.sub, &src)
	}
	return append(buf, ']'), true
}

func (r *run) text(buf []byte, s *string) ([]byte, bool) {
	if s == nil {
		return buf, false
	}
	return appendText(buf, *s), true
}

func appendTime(buf []byte, t time.Time) ([]byte, bool) {
	if t.IsZero() {
		return buf, false
	}
	buf = t.AppendFormat(append(buf, '"'), time.RFC3339Nano)
	return append(buf, '"'), true
}

// appendStoredTime writes a stored time in UTC. It returns false if the time is invalid.
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

// appendScalar writes a scalar whose stored form may differ from the API's.
func appendScalar(buf, raw []byte) []byte {
	switch {
	case raw[0] == '"':
		return appendText(buf, body.Unquote(nil, raw))
	case string(raw) == "-0":
		return append(buf, '0')
	}
	return append(buf, raw...)
}

// appendEnum writes the name of a stored enum value, or the value itself if it is unknown, since a newer gateway may have
// stored it.
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

func appendFloat(buf, raw []byte) []byte {
	x, _ := strconv.ParseFloat(string(raw), 64) // the scan of the body has checked it
	return strconv.AppendFloat(buf, x, 'g', -1, 64)
}

// hexDigits are the digits in escapes.
const hexDigits = "0123456789ABCDEF"

// appendText writes a string as gqlgen does: with no more escapes than JSON
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
