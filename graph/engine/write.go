package engine

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// The answer is written depth first:
//
//	object            the fields of a selection, one after the other
//	  scalar          a span of the body; most fields are, so object does it by itself
//	  field.write     any other field: see derivedField, and bodyWriter for other fields of a body
//	    below         the object below a field: object again

// source is what the fields of an object are read from. It is passed by value, because a pointer would be allocated for
// each indirect call of a writer.
type source struct {
	// item is a resource. table is its body or an object in the body.
	item  *item
	table body.Table
	// page is a page of resources or dependencies.
	page *connectionPage
	// index is the index of an edge on a page, a warning, a key of a group, or a count of a namespace.
	index int
	// group is the index of a group of a summary, or of a namespace on a page.
	group int
	// root is the value of the root field: the result of a mutation, an event, a summary, or a page of namespaces.
	root *resolved
	// entry is an entry of a map, a label or an annotation.
	entry *entry
}

// object writes the selected fields of an object. src is where their values are read.
func (r *run) object(ctx context.Context, buf []byte, o *object, src source) ([]byte, bool) {
	if len(o.fields) == 0 {
		return append(buf, "{}"...), true
	}
	ok := true
	for i := range o.fields {
		f := &o.fields[i]
		buf = append(buf, f.prefix...)
		if n := len(buf) + r.spent.errors; n > r.spent.until { // as in [run.room], which is not inlined
			buf = r.grow(ctx, f, buf, n)
		}
		if f.write == nil { // a scalar of a body, as most fields are
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
				buf = r.room(ctx, f, buf, len(raw))
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
		buf, some = f.write(ctx, r, buf, f, src)
		if !some {
			buf = append(buf[:at], "null"...)
			ok = ok && !f.nonNull
		}
	}
	return append(buf, '}'), ok
}

func writeConstant(_ context.Context, _ *run, buf []byte, f *field, _ source) ([]byte, bool) {
	return append(buf, f.constant...), true
}

// text returns the writer of a string field.
func text(of func(src source) string) fieldWriter {
	return func(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
		return appendText(buf, of(src)), true
	}
}

// optionalText returns the writer of a string field; an empty string is null.
func optionalText(of func(src source) string) fieldWriter {
	return func(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
		value := of(src)
		return appendText(buf, value), value != ""
	}
}

// integer returns the writer of a field of type Int.
func integer(of func(src source) int) fieldWriter {
	return func(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
		return strconv.AppendInt(buf, int64(of(src)), 10), true
	}
}

// boolean returns the writer of a Boolean field.
func boolean(of func(src source) bool) fieldWriter {
	return func(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
		return strconv.AppendBool(buf, of(src)), true
	}
}

// counted returns the writer of a number that is computed by read, possibly from the store. A number that an Int cannot
// hold is written as the greatest Int.
func counted(read func(ctx context.Context, src source) (int, error)) fieldWriter {
	return func(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
		n, err := read(ctx, src)
		if err != nil {
			return r.null(ctx, buf, f, err)
		}
		return strconv.AppendInt(buf, int64(min(n, math.MaxInt32)), 10), true
	}
}

// below writes the selection below a field as an object.
func (r *run) below(ctx context.Context, buf []byte, f *field, src source) ([]byte, bool) {
	r.push(f)
	buf, ok := r.object(ctx, buf, f.sub, src)
	r.pop()
	return buf, ok
}

// list writes a list of n objects that cannot be null. element returns what the i-th object is read from.
func (r *run) list(ctx context.Context, buf []byte, f *field, n int, element func(i int) source) []byte {
	buf = append(buf, '[')
	for i := range n {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf, _ = r.object(ctx, buf, f.sub, element(i))
	}
	return append(buf, ']')
}

// resource writes a resource as the value of a field.
func (r *run) resource(ctx context.Context, buf []byte, f *field, it *item) ([]byte, bool) {
	it.at = 0
	return r.resourceOn(ctx, buf, f, it)
}

// resourceOn is like resource, but for an item whose first links were written before. It continues with the next link.
func (r *run) resourceOn(ctx context.Context, buf []byte, f *field, it *item) ([]byte, bool) {
	r.count(f, 1)
	r.push(f)
	buf, ok := r.object(ctx, buf, f.on(it.kind), source{item: it})
	r.pop()
	return buf, ok
}

// null makes the value of a field null and adds an error.
func (r *run) null(ctx context.Context, buf []byte, f *field, err error) ([]byte, bool) {
	r.failed(ctx, err, f)
	return buf, false
}

// bodyWriter returns the writer of a field of a body. It returns nil for scalars that need no conversion, such as
// strings and integers; [run.object] writes these itself.
func bodyWriter(of *body.Field) fieldWriter {
	switch {
	case of.Type == descriptor.TypeMap:
		return writeMap
	case of.Type == descriptor.TypeObject && of.List:
		return writeObjects
	case of.Type == descriptor.TypeObject:
		return writeObject
	case of.List:
		return writeScalars
	case of.Type == descriptor.TypeEnum:
		return writeEnum
	case of.Type == descriptor.TypeFloat:
		return writeFloat
	case of.Type == descriptor.TypeTime:
		return writeStoredTime
	}
	return nil
}

// effective returns the default of a field of a body in the form of the API; nil if there is none.
func effective(f *field, of *body.Field) []byte {
	switch {
	case of.Default == nil:
		return nil
	case of.List:
		return appendScalar(nil, of.Default)
	case of.Type == descriptor.TypeEnum:
		return appendEnum(nil, f, of.Default)
	case of.Type == descriptor.TypeFloat:
		return appendFloat(nil, of.Default)
	case of.Type == descriptor.TypeTime:
		out, _ := appendStoredTime(nil, of.Default)
		return out
	}
	return appendScalar(nil, of.Default)
}

// stored returns the position of a field's value in the body; zero if it is absent.
func (f *field) stored(src source) body.Span { return src.item.body.At(src.table, f.slot) }

// absent writes the default of a field of a body, or null.
func (f *field) absent(buf []byte) ([]byte, bool) {
	return append(buf, f.otherwise...), f.otherwise != nil
}

func writeObject(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	s := f.stored(src)
	if s.IsZero() {
		return f.absent(buf)
	}
	return r.below(ctx, buf, f, source{item: src.item, table: src.item.body.Object(s)})
}

func writeObjects(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	s := f.stored(src)
	if s.IsZero() {
		return f.absent(buf)
	}
	return r.objects(ctx, buf, f, src.item, s)
}

func writeEnum(_ context.Context, _ *run, buf []byte, f *field, src source) ([]byte, bool) {
	s := f.stored(src)
	if s.IsZero() {
		return f.absent(buf)
	}
	return appendEnum(buf, f, src.item.body.Bytes(s)), true
}

func writeFloat(_ context.Context, _ *run, buf []byte, f *field, src source) ([]byte, bool) {
	s := f.stored(src)
	if s.IsZero() {
		return f.absent(buf)
	}
	return appendFloat(buf, src.item.body.Bytes(s)), true
}

func writeStoredTime(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	b, s := src.item.body, f.stored(src)
	if s.IsZero() {
		return f.absent(buf)
	}
	out, ok := appendStoredTime(buf, b.Bytes(s))
	if !ok {
		r.engine.badTime(src.item.kind.Name)
		if f.nonNull {
			return r.null(ctx, buf, f, failure.Of(backend.ErrUnreadable, b.Stored.Key))
		}
	}
	return out, ok
}

func writeMap(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool) {
	s := f.stored(src)
	if s.IsZero() {
		return f.absent(buf)
	}
	return r.entries(ctx, buf, f, sortedEntries(src.item.body, s))
}

func writeScalars(_ context.Context, _ *run, buf []byte, f *field, src source) ([]byte, bool) {
	s := f.stored(src)
	if s.IsZero() {
		return f.absent(buf)
	}
	return appendScalars(buf, f, src.item.body, s), true
}

// appendScalars appends a list of scalars of a body; an absent list is empty.
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

// objects writes a list of objects in a body.
func (r *run) objects(ctx context.Context, buf []byte, f *field, it *item, s body.Span) ([]byte, bool) {
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
		buf, some = r.object(ctx, buf, f.sub, source{item: it, table: t})
		if !some {
			buf = append(buf[:at], "null"...)
			ok = ok && !f.elementNonNull
		}
		r.pop()
	}
	return append(buf, ']'), ok
}

// entry is an entry of a map, a label or an annotation.
type entry struct{ key, value string }

func entryFields() fieldTable {
	return fieldTable{
		"key":   {write: writeKey},
		"value": {write: writeValue},
	}
}

func writeKey(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendText(buf, src.entry.key), true
}

func writeValue(_ context.Context, _ *run, buf []byte, _ *field, src source) ([]byte, bool) {
	return appendText(buf, src.entry.value), true
}

func (r *run) entries(ctx context.Context, buf []byte, f *field, list []entry) ([]byte, bool) {
	buf = append(buf, '[')
	for i := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf, _ = r.object(ctx, buf, f.sub, source{entry: &list[i]})
	}
	return append(buf, ']'), true
}

// appendOptional appends a string; nil is null.
func appendOptional(buf []byte, s *string) ([]byte, bool) {
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

// appendStoredTime appends a stored time in UTC. It returns false if the time is not valid.
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

// appendScalar appends a scalar whose stored form may differ from its form in the API.
func appendScalar(buf, raw []byte) []byte {
	switch {
	case raw[0] == '"':
		return appendText(buf, body.Unquote(nil, raw))
	case string(raw) == "-0":
		return append(buf, '0')
	}
	return append(buf, raw...)
}

// appendEnum appends the API name of a stored enum value. A value that is not known, because a newer gateway has stored
// it, is appended as it is.
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

// hexDigits are the digits of escapes.
const hexDigits = "0123456789ABCDEF"

// appendText appends a string in the same form as gqlgen: with only those escapes that JSON requires (RFC 8259, section
// 7).
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
