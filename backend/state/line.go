package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend"
)

// Format is the version of the file format that this release writes and reads.
const Format = 1

const (
	// formatName is the name of the file format in the header.
	formatName = "sluice-export"
	// maxLine is the maximum size of a line in bytes. A body of [backend.MaxStoredBytes] in base64 fits into it, with
	// the other fields.
	maxLine = 4 << 20
)

// Secrecy is the form of secrets in a file.
type Secrecy string

const (
	// Sealed: secrets are encrypted by the keyring.
	Sealed Secrecy = "sealed"
	// Plain: secrets are not encrypted.
	Plain Secrecy = "plain"
	// None: the file has no secrets.
	None Secrecy = "none"
)

// Header is the first line of a file.
type Header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Release is the release of the program that has written the file.
	Release string `json:"release,omitempty"`
	// WrittenAt is when the export began, by the store's clock.
	WrittenAt time.Time `json:"writtenAt"`
	// Catalogue is the hash of the catalogue that the store has accepted last; empty if there is none.
	Catalogue string `json:"catalogue,omitempty"`
	// Secrets is the form of secrets in the file.
	Secrets Secrecy `json:"secrets"`
	// Key is the id of the key with which secrets are encrypted.
	Key string `json:"key,omitempty"`
	// Source identifies the data from which the file was made, if the file is generated each time it is needed. All
	// files with the same source have the same records with the same uids. Thus a bootstrap that was begun with one can
	// be continued with another one.
	Source string `json:"source,omitempty"`
}

// check returns an error if the header is from another program or a newer release.
func (h Header) check() error {
	switch {
	case h.Format != formatName:
		return backend.FormatErrorf("it is no export: it does not begin with the header of one")
	case h.Version != Format:
		return backend.FormatErrorf("it has version %d of the format, this release knows %d", h.Version, Format)
	}
	return nil
}

// End is the last line of a file.
type End struct {
	// Lines is the number of lines between the header and the end line.
	Lines int `json:"lines"`
	// Records is the number of lines that were the first for their keys. Changes is the number of further lines, which
	// replace another one.
	Records int `json:"records"`
	Changes int `json:"changes,omitempty"`
	// Unreadable is the number of records that the store could not decode. The file has no more than their keys.
	Unreadable int `json:"unreadable,omitempty"`
	// Keys are the ids of all keys that are needed to read the file.
	Keys []string `json:"keys,omitempty"`
	// Position is a position in the store's log. The file has the state of the store at that position.
	Position string `json:"position"`
	// SHA256 is the checksum of all bytes before the gzip member with the end line.
	SHA256 string `json:"sha256"`
}

// Line is a line of a file. It has a record, or means that a record was deleted or is unreadable.
type Line struct {
	// Resource is the stored record, whose body may be encrypted. A deleted or unreadable record has only its key.
	Resource *backend.Resource
	// Deleted reports whether the record was deleted.
	Deleted bool
	// Unreadable reports whether the store could not decode the record.
	Unreadable bool
	// Later reports whether the line may replace an earlier one with the same key.
	Later bool
}

// sealed reports whether the body is encrypted.
func (l *Line) sealed() bool {
	return len(l.Resource.Body) > 0 && l.Resource.Body[0] == backend.BodySealed
}

type lineJSON struct {
	Kind       string          `json:"kind"`
	Namespace  string          `json:"namespace,omitempty"`
	Name       string          `json:"name"`
	UID        string          `json:"uid,omitempty"`
	Revision   string          `json:"revision,omitempty"`
	CreatedAt  *time.Time      `json:"createdAt,omitempty"`
	UpdatedAt  *time.Time      `json:"updatedAt,omitempty"`
	ExpiresAt  *time.Time      `json:"expiresAt,omitempty"`
	Deleting   bool            `json:"deleting,omitempty"`
	Finalizers int             `json:"finalizers,omitempty"`
	Declared   string          `json:"declared,omitempty"`
	Refs       []refJSON       `json:"refs,omitempty"`
	Later      bool            `json:"later,omitempty"`
	Deleted    bool            `json:"deleted,omitempty"`
	Unreadable bool            `json:"unreadable,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	// Sealed is an encrypted body. Raw is a body that is not a JSON object on one line.
	Sealed []byte `json:"sealed,omitempty"`
	Raw    []byte `json:"raw,omitempty"`
}

type refJSON struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Bound     bool   `json:"bound,omitempty"`
}

// appendLine appends a line in JSON, with a newline at its end.
func appendLine(dst []byte, l Line) ([]byte, error) {
	r := l.Resource
	for _, text := range []string{r.Kind, r.Namespace, r.Name, r.UID, r.Declared} {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("record %q: it is not text, as its key has to be: %w", r.Key, backend.ErrUnreadable)
		}
	}
	out := lineJSON{
		Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID, Revision: r.Revision.String(),
		Deleting: r.Deleting, Finalizers: r.Finalizers, Declared: r.Declared,
		Later: l.Later, Deleted: l.Deleted, Unreadable: l.Unreadable,
		CreatedAt: moment(r.CreatedAt), UpdatedAt: moment(r.UpdatedAt), ExpiresAt: moment(r.ExpiresAt),
	}
	for _, ref := range r.Refs {
		out.Refs = append(out.Refs, refJSON{ref.Key.Kind, ref.Key.Namespace, ref.Key.Name, ref.Bound})
	}
	raw, plain := plainJSON(r.Body)
	switch {
	case l.Deleted || l.Unreadable:
		plain = false
	case l.sealed():
		out.Sealed = r.Body
	case !plain:
		out.Raw = r.Body
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", r.Key, err)
	}
	if !plain {
		return append(append(dst, text...), '\n'), nil
	}
	dst = append(dst, text[:len(text)-1]...)
	dst = append(dst, `,"body":`...)
	dst = append(dst, raw...)
	return append(dst, '}', '\n'), nil
}

// moment returns a pointer to a time; nil for the zero time.
func moment(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// plainJSON returns the JSON of a stored body, and whether a line can contain it unchanged.
func plainJSON(body []byte) ([]byte, bool) {
	raw, err := backend.DecodeBody(body)
	ok := err == nil && len(raw) > 1 && raw[0] == '{' && raw[len(raw)-1] == '}' &&
		bytes.IndexByte(raw, '\n') < 0 && json.Valid(raw)
	return raw, ok
}

// decodeStrict decodes one JSON value. Unknown fields are an error.
func decodeStrict(text []byte, out any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows the value")
	}
	return nil
}

// decodeLine decodes a line that appendLine has encoded.
func decodeLine(text []byte) (l Line, err error) {
	var in lineJSON
	if err := decodeStrict(text, &in); err != nil {
		return l, fmt.Errorf("%w: %w", backend.ErrUnreadable, err)
	}
	r := &backend.Resource{Key: backend.Key{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name}}
	l = Line{Resource: r, Deleted: in.Deleted, Unreadable: in.Unreadable, Later: in.Later}
	if in.Revision != "" {
		if r.Revision, err = backend.ParseRevision(in.Revision); err != nil {
			return l, fmt.Errorf("%w: %w", backend.ErrUnreadable, err)
		}
	}
	r.UID = in.UID
	r.CreatedAt = timeOf(in.CreatedAt)
	r.UpdatedAt = timeOf(in.UpdatedAt)
	r.ExpiresAt = timeOf(in.ExpiresAt)
	r.Deleting = in.Deleting
	r.Finalizers = in.Finalizers
	r.Declared = in.Declared
	for _, ref := range in.Refs {
		key := backend.Key{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
		r.Refs = append(r.Refs, backend.Ref{Key: key, Bound: ref.Bound})
	}
	switch {
	case in.Body != nil:
		r.Body = backend.EncodeBody(in.Body)
	case in.Sealed != nil:
		r.Body = in.Sealed
	default:
		r.Body = in.Raw
	}
	return l, l.check(in)
}

// check returns an error for a line that no export writes.
func (l *Line) check(in lineJSON) error {
	bodies := 0
	for _, given := range []bool{in.Body != nil, in.Sealed != nil, in.Raw != nil} {
		if given {
			bodies++
		}
	}
	problem := ""
	switch {
	case in.Kind == "" || in.Name == "":
		problem = "it is no record"
	case l.Deleted && !l.Later:
		problem = "nothing precedes it that is deleted"
	case l.Deleted && l.Unreadable || (l.Deleted || l.Unreadable) && bodies > 0:
		problem = "it has a body and says that there is none"
	case l.Deleted || l.Unreadable:
	case bodies != 1 || len(l.Resource.Body) == 0:
		problem = "one body is wanted"
	case in.Sealed != nil && !l.sealed() || in.Sealed == nil && l.sealed():
		problem = "its body is not of the form that it says"
	case in.UID == "" || in.CreatedAt == nil || in.UpdatedAt == nil:
		problem = "uid, createdAt and updatedAt are wanted"
	}
	if problem != "" {
		return fmt.Errorf("%s: %w", problem, backend.ErrUnreadable)
	}
	return nil
}

// timeOf returns a time in UTC; the zero time for nil.
func timeOf(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.UTC()
}
