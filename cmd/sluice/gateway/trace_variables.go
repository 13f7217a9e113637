package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/internal/certificate"
)

const (
	// exporterPrefix is the prefix of the exporter's variables. A variable with tracesPrefix takes precedence over the
	// one with exporterPrefix.
	exporterPrefix = "OTEL_EXPORTER_OTLP_"
	tracesPrefix   = exporterPrefix + "TRACES_"
)

// maxTraceQueue is the maximum number of spans in the queue, and in one export. The library allocates memory for both
// when it starts.
const maxTraceQueue = 1 << 20

// headerKey matches the name of a header (RFC 9110, token).
var headerKey = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")

// checkVariables returns an error that joins the problems with the variables that the library of OpenTelemetry reads.
// The library ignores malformed values, logs them even if they are secret, and panics if the queue is too large. The
// error does not quote values that may be secret.
func (s traceSettings) checkVariables(ctx context.Context) error {
	var errs []error
	for _, prefix := range []string{exporterPrefix, tracesPrefix} {
		check := func(name string, accepted func(value string) error) {
			value := strings.TrimSpace(s.lookup(prefix + name))
			if value == "" {
				return
			}
			if err := accepted(value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", prefix+name, err))
			}
		}
		if s.endpoint == "" {
			check("ENDPOINT", config.CheckCollector)
		}
		check("HEADERS", checkHeaders)
		check("TIMEOUT", wholeNumber(0, 0))
		check("COMPRESSION", checkCompression)
		check("CERTIFICATE", func(path string) error {
			content, err := config.ReadFile(ctx, path)
			if err != nil {
				return err
			}
			_, err = certificate.Authorities(certificate.File{Path: path, Content: content})
			return err
		})
		key := strings.TrimSpace(s.lookup(prefix + "CLIENT_KEY"))
		check("CLIENT_CERTIFICATE", func(path string) error {
			if key == "" {
				return fmt.Errorf("it needs %sCLIENT_KEY", prefix)
			}
			_, err := config.ReadKeyPair(ctx, path, key)
			return err
		})
	}
	for _, number := range []struct {
		variable    string
		least, most int64
	}{
		{"OTEL_BSP_SCHEDULE_DELAY", 1, 0},
		{"OTEL_BSP_EXPORT_TIMEOUT", 0, 0},
		{"OTEL_BSP_MAX_QUEUE_SIZE", 1, maxTraceQueue},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 1, maxTraceQueue},
	} {
		if value := s.lookup(number.variable); value != "" {
			if err := wholeNumber(number.least, number.most)(value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", number.variable, err))
			}
		}
	}
	return errors.Join(errs...)
}

// checkHeaders returns an error if a header of requests to the collector is malformed.
func checkHeaders(text string) error {
	for i, header := range strings.Split(text, ",") {
		name, value, found := strings.Cut(header, "=")
		if strings.TrimSpace(header) == "" {
			continue
		}
		if _, err := url.PathUnescape(value); err != nil || !found || !headerKey.MatchString(strings.TrimSpace(name)) {
			return fmt.Errorf(
				"header %d is malformed; accepted are pairs like api-key=value, separated by commas, with %%25 for %%", i+1,
			)
		}
	}
	return nil
}

func checkCompression(name string) error {
	if name != "gzip" && name != "none" {
		return fmt.Errorf("%q; accepted are gzip and none", name)
	}
	return nil
}

// wholeNumber returns a function that returns an error unless a text is a whole number from least to most. If most is
// 0, the largest int32 is used.
func wholeNumber(least, most int64) func(string) error {
	const bits = 32
	most = cmp.Or(most, 1<<(bits-1)-1)
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q; a whole number from %d to %d is accepted", text, least, most)
		}
		return nil
	}
}
