package state

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/sluicegw/sluice/backend"
)

// ErrCut means that the file is cut off, because it has no end line.
var ErrCut = errors.New("it is cut off: it has no end line. Take another copy, or export again")

// ErrChanged means that the file was changed or damaged after it was written.
var ErrChanged = errors.New("it was changed or damaged since it was written: its checksum does not match. Take another copy, or export again")

// Writer writes a file, line by line.
type Writer struct {
	to    *counted
	lines *gzip.Writer
	line  []byte
	count int
}

// counted is a writer that computes a checksum of everything written.
type counted struct {
	to  io.Writer
	sum hash.Hash
}

// Write implements [io.Writer].
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.sum.Write(p[:n])
	return n, err
}

// NewWriter begins a file. It writes the header, with Format and Version set.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	out := &Writer{to: &counted{to: w, sum: sha256.New()}}
	var err error
	if out.lines, err = gzip.NewWriterLevel(out.to, gzip.BestSpeed); err != nil {
		return nil, err
	}
	h.Format = formatName
	h.Version = Format
	text, err := json.Marshal(h)
	if err == nil {
		_, err = out.lines.Write(append(text, '\n'))
	}
	return out, err
}

// Write appends a line, which is compressed and may be buffered.
func (w *Writer) Write(l Line) (err error) {
	if w.line, err = appendLine(w.line[:0], l); err != nil {
		return err
	}
	w.count++
	_, err = w.lines.Write(w.line)
	return err
}

// Close completes the file with the end line, in which it sets Lines and SHA256. It returns the end line. It does not
// close the underlying writer.
func (w *Writer) Close(e End) (End, error) {
	if err := w.lines.Close(); err != nil {
		return e, err
	}
	e.Lines = w.count
	e.SHA256 = hex.EncodeToString(w.to.sum.Sum(nil))
	text, err := endLine(e)
	if err != nil {
		return e, err
	}
	_, err = w.to.to.Write(endMember(text))
	return e, err
}

// endLine encodes an end line. [Reader] accepts no other encoding of it.
func endLine(e End) ([]byte, error) {
	text, err := json.Marshal(struct {
		End End `json:"end"`
	}{e})
	if len(text) > maxEnd {
		return nil, fmt.Errorf("an end line of %d bytes, at most %d", len(text), maxEnd)
	}
	return append(text, '\n'), err
}

// maxEnd is the maximum size of an end line, in bytes. It fits into one stored block, which has at most 65,535 bytes.
const maxEnd = 60_000

// endMember returns a gzip member with an uncompressed text (RFC 1952, and RFC 1951 section 3.2.4). Each text has
// exactly one such form.
func endMember(text []byte) []byte {
	out := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}
	out = append(out, 1) // the last block, stored
	out = binary.LittleEndian.AppendUint16(out, uint16(len(text)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(text)))
	out = append(out, text...)
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(text))
	return binary.LittleEndian.AppendUint32(out, uint32(len(text)))
}

// Reader reads a file, line by line.
type Reader struct {
	from   *summed
	lines  *gzip.Reader
	header Header
	end    End
	// buf[at:to] is decompressed but not yet used.
	buf    []byte
	at, to int
	count  int
	err    error // the error that has ended the reading, or io.EOF
}

// NewReader begins to read a file. It reads the header.
func NewReader(r io.Reader) (*Reader, error) {
	out := &Reader{from: newSummed(r), buf: make([]byte, 2*readStep)}
	var err error
	out.lines, err = gzip.NewReader(out.from)
	switch {
	case err == nil:
	case out.from.err != nil && !errors.Is(out.from.err, io.EOF):
		return nil, out.from.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, ErrCut
	default:
		return nil, backend.FormatErrorf("it is no export: it is not compressed by gzip")
	}
	out.lines.Multistream(false)
	text, err := out.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, ErrCut
	case err != nil:
		return nil, out.problem(err)
	}
	if err := json.Unmarshal(text, &out.header); err != nil {
		out.header = Header{}
	}
	return out, out.header.check()
}

// Header returns the header of the file.
func (r *Reader) Header() Header { return r.header }

// End returns the end line. It may be called after Next has returned [io.EOF].
func (r *Reader) End() End { return r.end }

// Next returns the next line. It returns [io.EOF] when the file was read completely and its checksum is correct. Before
// that, lines may be wrong and must not be relied on.
func (r *Reader) Next() (Line, error) {
	if r.err != nil {
		return Line{}, r.err
	}
	text, err := r.next()
	if errors.Is(err, io.EOF) {
		err = cmp.Or(r.finish(), io.EOF)
	}
	if err != nil {
		r.err = r.problem(err)
		return Line{}, r.err
	}
	r.count++
	l, err := decodeLine(text)
	if err != nil {
		r.err = r.reason(fmt.Errorf("line %d: %w", r.count+1, err))
	}
	return l, r.err
}

// reason returns the error for a line that cannot be decoded. It reads the rest of the file: if the checksum is wrong,
// the error is ErrChanged, otherwise err.
func (r *Reader) reason(err error) error {
	for {
		_, failed := r.next()
		switch {
		case errors.Is(failed, io.EOF):
			return cmp.Or(r.finish(), err)
		case failed != nil:
			return r.problem(failed)
		}
		r.count++
	}
}

// problem returns the error for a file that could not be read or decompressed: the error of the underlying reader,
// ErrCut or ErrChanged.
func (r *Reader) problem(err error) error {
	switch {
	case err == io.EOF, errors.Is(err, ErrCut), errors.Is(err, ErrChanged):
		return err
	case r.from.err != nil && !errors.Is(r.from.err, io.EOF):
		return r.from.err // the file could not be read
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ErrCut
	}
	return ErrChanged
}

// readStep is the number of bytes that are decompressed at a time.
const readStep = 64 << 10

// next returns the next line without its newline, which is valid until the next call. It returns [io.EOF] after the
// last line.
func (r *Reader) next() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(r.buf[r.at+searched:r.to], '\n'); i >= 0 {
			text := r.buf[r.at : r.at+searched+i]
			r.at += searched + i + 1
			return text, nil
		}
		searched = r.to - r.at
		if searched > maxLine {
			return nil, ErrChanged
		}
		r.makeRoom()
		n, err := r.lines.Read(r.buf[r.to : r.to+readStep])
		r.to += n
		switch {
		case n > 0 || err == nil:
		case errors.Is(err, io.EOF) && searched > 0:
			return nil, ErrChanged // the last line has no end
		default:
			return nil, err
		}
	}
}

// makeRoom makes room in buf for readStep bytes.
func (r *Reader) makeRoom() {
	if len(r.buf)-r.to >= readStep {
		return
	}
	to := r.buf
	if r.to-r.at > len(r.buf)-readStep {
		to = make([]byte, 2*len(r.buf))
	}
	r.to = copy(to, r.buf[r.at:r.to])
	r.at = 0
	r.buf = to
}

// The sizes of the parts of [endMember] before and after the text.
const (
	memberHead = 15
	memberTail = 8
)

// finish reads the end line and checks the checksum.
func (r *Reader) finish() error {
	sum := hex.EncodeToString(r.from.sum())
	rest, err := io.ReadAll(io.LimitReader(r.from, maxEnd+memberHead+memberTail+1))
	if err != nil {
		return err
	}
	if cutMember(rest) {
		return ErrCut
	}
	text := rest[memberHead : len(rest)-memberTail]
	var last struct {
		End End `json:"end"`
	}
	if err := decodeStrict(text, &last); err != nil {
		return ErrChanged
	}
	whole, err := endLine(last.End)
	if err != nil || !bytes.Equal(rest, endMember(whole)) || last.End.SHA256 != sum || last.End.Lines != r.count {
		return ErrChanged
	}
	r.end = last.End
	return nil
}

// cutMember reports whether the member with the end line is incomplete.
func cutMember(rest []byte) bool {
	if len(rest) < memberHead {
		return true
	}
	length := int(binary.LittleEndian.Uint16(rest[memberHead-4:]))
	return len(rest) < memberHead+memberTail || len(rest) < memberHead+length+memberTail
}

// summed is a buffered reader that computes a checksum of the bytes that were read from it.
type summed struct {
	from io.Reader
	hash hash.Hash
	buf  []byte
	// buf[at:to] has not been read yet. buf[hashed:at] has been read but is not yet part of the checksum.
	hashed, at, to int
	err            error // of from
}

func newSummed(r io.Reader) *summed {
	return &summed{from: r, hash: sha256.New(), buf: make([]byte, readStep)}
}

// fill reads more bytes into buf if buf has no unread bytes. It reports whether buf has any then.
func (s *summed) fill() bool {
	for s.at == s.to && s.err == nil {
		s.hash.Write(s.buf[s.hashed:s.at])
		s.hashed = 0
		s.at = 0
		s.to, s.err = s.from.Read(s.buf)
	}
	return s.at < s.to
}

// Read implements [io.Reader].
func (s *summed) Read(p []byte) (int, error) {
	if !s.fill() {
		return 0, s.err
	}
	n := copy(p, s.buf[s.at:s.to])
	s.at += n
	return n, nil
}

// ReadByte implements [io.ByteReader]. With it, gzip reads only the bytes of one member.
func (s *summed) ReadByte() (byte, error) {
	if !s.fill() {
		return 0, s.err
	}
	s.at++
	return s.buf[s.at-1], nil
}

// sum returns the checksum of the bytes read so far.
func (s *summed) sum() []byte {
	s.hash.Write(s.buf[s.hashed:s.at])
	s.hashed = s.at
	return s.hash.Sum(nil)
}
