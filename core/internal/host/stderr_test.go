package host

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStderrIsLogged(t *testing.T) {
	var log, raw bytes.Buffer
	s := &stderr{tee: &raw, log: newBridge(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})), "acme")}
	in := `{"@level":"error","@message":"bad","@timestamp":"x","b":1,"a":[]}` + "\n" +
		"[WARN] half" + " a line\n\nplain\n{\"@message\":5}\n{\"@level\":7,\"@message\":\"x\"}\npanic: gone\n\tat.go:1\n" + strings.Repeat("y", maxLine+2) + "\nopen"
	for from := 0; from < len(in); from += 11 {
		if n, err := s.Write([]byte(in[from:min(from+11, len(in))])); err != nil || n == 0 {
			t.Fatal(n, err)
		}
	}
	want := `level=WARN msg=bad decoder=acme a=[] b=1
level=INFO msg="[WARN] half a line" decoder=acme
level=DEBUG msg=plain decoder=acme
level=DEBUG msg="{\"@message\":5}" decoder=acme
level=DEBUG msg="{\"@level\":7,\"@message\":\"x\"}" decoder=acme
level=WARN msg="panic: gone" decoder=acme
level=WARN msg=at.go:1 decoder=acme
level=WARN msg=` + strings.Repeat("y", maxLine) + ` decoder=acme
level=WARN msg=yy decoder=acme
`
	if got := log.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if raw.String() != in {
		t.Error("the raw stream was changed")
	}
}

// TestLogOfThePlugin: what go-plugin logs of a process is one level lower here.
func TestLogOfThePlugin(t *testing.T) {
	var log bytes.Buffer
	b := newBridge(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), "acme")
	for level, write := range map[string]func(string, ...any){"DEBUG": b.Debug, "DEBUG msg=i": b.Info, "INFO": b.Warn, "WARN": b.Error} {
		log.Reset()
		write("i am here", "pid", 7)
		if level, _, _ = strings.Cut(level, " "); !strings.Contains(log.String(), "level="+level+` msg="i am here" decoder=acme pid=7`) {
			t.Errorf("%s: %s", level, log.String())
		}
	}
	log.Reset()
	if b.Trace("i am here"); log.Len() > 0 {
		t.Error(log.String())
	}
}

// TestLongLineIsCut: a line without an end takes no more memory than maxLine, however it is written.
func TestLongLineIsCut(t *testing.T) {
	var log bytes.Buffer
	s := &stderr{log: newBridge(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), "acme")}
	for _, b := range []string{"xyz", strings.Repeat("y", 2*maxLine), "end\n"} {
		if _, err := s.Write([]byte(b)); err != nil {
			t.Fatal(err)
		}
		if len(s.line) >= maxLine {
			t.Errorf("%d bytes are kept", len(s.line))
		}
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], "msg=yyyend ") {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

// go-plugin's own reader of a plugin's stderr would end this process here.
func TestNoLineOfStderrEndsTheHost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rude")
	script := "#!/bin/sh\necho '{\"@level\":\"info\",\"@message\":5}' >&2\necho '{\"@message\":\"m\",\"@timestamp\":5}' >&2\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, log := range []*slog.Logger{nil, slog.New(slog.DiscardHandler)} {
		p, err := Start(t.Context(), Settings{Name: "rude", Path: path, SocketDir: t.TempDir(), Logger: log, StartTimeout: 5 * time.Second})
		if err == nil {
			p.Kill()
			t.Error("a program that serves nothing was started")
		}
	}
}
