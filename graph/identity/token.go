package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// tokenPrefix is the prefix of static tokens. Secret scanners can recognize it.
const tokenPrefix = "sluice_"

// tokenBytes is the number of random bytes of a token.
const tokenBytes = 32

const (
	// MaxTokens is the maximum number of tokens in the file.
	MaxTokens = 10_000
	// MaxTokensFile is the maximum size of the file of tokens in bytes.
	MaxTokensFile = 8 << 20
)

// Token is the entry of a static token in the file. It does not have the text of the token.
type Token struct {
	// Name is the name of the caller, without a prefix.
	Name string
	// Hash is the SHA-256 of the token's text.
	Hash [sha256.Size]byte
	// Groups are the groups of the caller, without a prefix.
	Groups []string
	// Expires is when the token expires; zero if it does not expire. [Token.String] leaves out fractions of a second.
	Expires time.Time
}

// NewToken returns the text of a new token and its hash.
func NewToken(random io.Reader) (text string, hash [sha256.Size]byte, err error) {
	raw := make([]byte, tokenBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", hash, err
	}
	text = tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	return text, sha256.Sum256([]byte(text)), nil
}

// hashPrefix is the prefix of a hash in the file. It names the hash function.
const hashPrefix = "sha256:"

// none is the text in the file for no groups, and for no expiry.
const none = "-"

// String returns the token as a line of the file: its name, hash, groups and expiry, separated by blanks.
func (t Token) String() string {
	groups, expires := none, none
	if len(t.Groups) > 0 {
		groups = strings.Join(t.Groups, ",")
	}
	if !t.Expires.IsZero() {
		expires = t.Expires.UTC().Format(time.RFC3339)
	}
	return strings.Join([]string{t.Name, hashPrefix + hex.EncodeToString(t.Hash[:]), groups, expires}, " ")
}

// Validate returns an error that joins all problems with the names in the token.
func (t Token) Validate() error {
	errs := []error{checkTokenName("name", t.Name)}
	if len(t.Groups) > maxGroups {
		errs = append(errs, fmt.Errorf("groups: %d, and %d are accepted", len(t.Groups), maxGroups))
	}
	for _, g := range t.Groups {
		errs = append(errs, checkTokenName("group", g))
	}
	return errors.Join(errs...)
}

func checkTokenName(what, name string) error {
	if name == none || strings.HasPrefix(name, "#") || strings.ContainsAny(name, ", \t") {
		return fmt.Errorf("%s: commas and blanks are not accepted, nor - alone, nor # at the beginning", what)
	}
	if checkName(what, name) != nil {
		return fmt.Errorf("%s: 1 to %d bytes of printable characters are accepted", what, maxName)
	}
	return nil
}

// ParseTokens parses a file with one token per line, see [Token.String]. It ignores empty lines and lines that begin
// with #. For each damaged line it returns an error, which has the line number but no text of the line. The other lines
// are still used.
func ParseTokens(data []byte) (tokens []Token, errs []error) {
	if len(data) > MaxTokensFile {
		return nil, []error{fmt.Errorf("the file has more than the %d bytes that are accepted", MaxTokensFile)}
	}
	number := 0
	names, hashes := map[string]int{}, map[[sha256.Size]byte]int{}
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		t, err := parseToken(text)
		switch {
		case err != nil:
		case names[t.Name] > 0:
			err = fmt.Errorf("the name stands in line %d already", names[t.Name])
		case hashes[t.Hash] > 0:
			err = fmt.Errorf("the hash stands in line %d already", hashes[t.Hash])
		case len(tokens) == MaxTokens:
			err = fmt.Errorf("there are more than the %d tokens that are accepted", MaxTokens)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		names[t.Name], hashes[t.Hash] = number, number
		tokens = append(tokens, t)
	}
	return tokens, errs
}

func parseToken(line string) (t Token, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return t, errors.New("a token has a name, a hash, groups (or -) and an end (or -), with blanks between them")
	}
	t.Name = fields[0]
	hash, isHash := strings.CutPrefix(fields[1], hashPrefix)
	if n, err := hex.Decode(t.Hash[:], []byte(hash[:min(len(hash), 2*sha256.Size)])); err != nil ||
		n != sha256.Size || len(hash) != 2*sha256.Size || !isHash {
		return t, errors.New("a hash is sha256: and 64 hexadecimal digits")
	}
	if fields[2] != none {
		t.Groups = strings.Split(fields[2], ",")
	}
	if fields[3] != none {
		if t.Expires, err = time.Parse(time.RFC3339, fields[3]); err != nil {
			return t, errors.New("an end is a time like 2026-12-24T10:00:00Z")
		}
	}
	return t, t.Validate()
}
