package host

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
)

// maxLine is how much of a line of a process's stderr is logged as one.
const maxLine = 64 << 10

// stderr logs the standard error of a process, and passes its bytes on as they are.
//
// go-plugin would do that too, but it takes "@message" for a string without a check:
// a line {"@message":5} from a plugin would end the host. Our logger (bridge) is off
// for go-plugin, so that it does not parse lines at all.
//
// One goroutine writes to it.
type stderr struct {
	log  *bridge
	tee  io.Writer // gets the raw bytes; may be nil
	line []byte
	last atomic.Pointer[string] // the last line
	// panicking is set from the first line of a stack trace on.
	panicking bool
}

// Write implements io.Writer. An error of the tee is not one of the process.
func (s *stderr) Write(b []byte) (int, error) {
	if s.tee != nil {
		_, _ = s.tee.Write(b)
	}
	for rest := b; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		part := rest
		if i >= 0 {
			part = rest[:i]
		}
		part = part[:min(len(part), maxLine-len(s.line))]
		s.line = append(s.line, part...)
		rest = rest[len(part):]
		if len(rest) > 0 && rest[0] == '\n' {
			rest = rest[1:]
			s.flush()
		} else if len(s.line) == maxLine {
			s.flush()
		}
	}
	return len(b), nil
}

var levels = []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error}

func (s *stderr) flush() {
	line := string(bytes.ToValidUTF8(bytes.TrimSpace(s.line), []byte("\uFFFD")))
	s.line = s.line[:0]
	if line == "" {
		return
	}
	s.last.Store(&line)
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) == nil {
		message, isText := fields["@message"].(string)
		level, _ := fields["@level"].(string)
		if l := hclog.LevelFromString(level); isText && l != hclog.NoLevel {
			s.log.Log(l, message, rest(fields)...)
			return
		}
	}
	level := hclog.Debug
	for _, l := range levels {
		if strings.HasPrefix(line, "["+strings.ToUpper(l.String())+"]") {
			level = l
		}
	}
	s.panicking = s.panicking || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	if s.panicking {
		level = hclog.Error
	}
	s.log.Log(level, line)
}

// rest returns the further fields of a line, in a fixed order.
func rest(fields map[string]any) []any {
	var args []any
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if k != "@message" && k != "@level" && k != "@timestamp" {
			args = append(args, k, fields[k])
		}
	}
	return args
}
