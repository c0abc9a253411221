package host

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newBridge returns go-plugin's logger, which writes to ours. Most of go-plugin's info lines
// are of interest only in debugging, so its lines are one level lower here.
func newBridge(l *slog.Logger, name string) *bridge {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return &bridge{Logger: hclog.NewNullLogger(), to: l.With("decoder", name)}
}

type bridge struct {
	hclog.Logger // the methods that go-plugin does not call
	to           *slog.Logger
}

func (b *bridge) Log(level hclog.Level, s string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Warn:
		to = slog.LevelInfo
	case hclog.Error:
		to = slog.LevelWarn
	}
	b.to.Log(context.Background(), to, s, args...)
}

// GetLevel keeps go-plugin from parsing the process's stderr: see stderr.
func (b *bridge) GetLevel() hclog.Level { return hclog.Off }

func (b *bridge) Trace(string, ...any)           {}
func (b *bridge) Debug(s string, args ...any)    { b.Log(hclog.Debug, s, args...) }
func (b *bridge) Info(s string, args ...any)     { b.Log(hclog.Info, s, args...) }
func (b *bridge) Warn(s string, args ...any)     { b.Log(hclog.Warn, s, args...) }
func (b *bridge) Error(s string, args ...any)    { b.Log(hclog.Error, s, args...) }
func (b *bridge) With(args ...any) hclog.Logger  { return &bridge{b.Logger, b.to.With(args...)} }
func (b *bridge) Named(string) hclog.Logger      { return b }
func (b *bridge) ResetNamed(string) hclog.Logger { return b }

func (b *bridge) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}

func (b *bridge) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
