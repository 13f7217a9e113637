package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// prefixes are the prefixes of the units of sizes. Each unit is 1,024 times the previous one.
const prefixes = "KMGT"

// size is a flag for a number of bytes, such as 4194304, 4MiB or 4 MiB.
type size int64

func (s *size) Type() string { return "bytes" }

func (s *size) String() string {
	n, unit := int64(*s), ""
	for i := 0; i < len(prefixes) && n >= 1024 && n%1024 == 0; i++ {
		n, unit = n/1024, prefixes[i:i+1]+"iB"
	}
	return strconv.FormatInt(n, 10) + unit
}

func (s *size) Set(text string) error {
	factor := int64(1)
	if number, ok := strings.CutSuffix(text, "iB"); ok && number != "" {
		last := len(number) - 1
		power := 1 + strings.IndexByte(prefixes, number[last])
		if power == 0 {
			return strconv.ErrSyntax
		}
		factor <<= 10 * power
		text = strings.TrimSuffix(number[:last], " ")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	if n > math.MaxInt64/factor || n < math.MinInt64/factor {
		return strconv.ErrRange
	}
	*s = size(n * factor)
	return nil
}

// span is a flag for a duration in the form of [time.ParseDuration], which may begin with a number of days of 24 hours.
// Examples are 90s, 1h30m, 7d and 1d12h.
type span time.Duration

// DurationVar defines a flag for a duration that may have days.
func DurationVar(f *pflag.FlagSet, v *time.Duration, name string, value time.Duration, help string) {
	*v = value
	f.Var((*span)(v), name, help)
}

const day = 24 * time.Hour

// errDays is the error for a number of days that is too large for a duration.
var errDays = errors.New("too many days")

func (s *span) Type() string { return "duration" }

// String formats whole days as days, such as 1d for 24h0m0s.
func (s *span) String() string {
	d := time.Duration(*s)
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (s *span) Set(text string) error {
	var days time.Duration
	if number, rest, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return err
		}
		days = time.Duration(n) * day
		text = rest
		if text == "" {
			text = "0s"
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if days > 0 && (d < 0 || days > math.MaxInt64-d) {
		return errDays
	}
	*s = span(days + d)
	return nil
}
