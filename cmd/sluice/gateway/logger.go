package gateway

import (
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// NewLogger returns a logger. If no format is set, it writes text to a terminal and JSON elsewhere.
func NewLogger(w io.Writer, level, format string) (*zap.Logger, error) {
	l, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("log-level: %q; accepted are debug, info, warn, error", level))
	}
	if format == "auto" {
		format = "json"
		if terminal.IsTerminal(w) {
			format = "console"
		}
	}
	cfg := zap.NewProductionEncoderConfig()
	var enc zapcore.Encoder
	switch format {
	case "json":
		cfg.TimeKey, cfg.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
		enc = zapcore.NewJSONEncoder(cfg)
	case "console":
		cfg.EncodeTime = zapcore.TimeEncoderOfLayout(time.TimeOnly)
		cfg.EncodeLevel = zapcore.CapitalLevelEncoder
		if terminal.Coloured(w) {
			cfg.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
		enc = zapcore.NewConsoleEncoder(cfg)
	default:
		return nil, exit.Usage(fmt.Errorf("log-format: %q; accepted are auto, console, json", format))
	}
	return zap.New(zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(w)), l)), nil
}
