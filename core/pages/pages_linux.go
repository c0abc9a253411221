package pages

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Release unmaps the resident pages of this process's mappings of a file that cannot be written to and of which the
// process has no page of its own, and returns how many bytes were resident.
func Release(file string) (bytes int64, err error) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return 0, fmt.Errorf("pages: %w", err)
	}
	defer f.Close()
	list, err := mappings(f)
	if err != nil {
		return 0, fmt.Errorf("pages: read /proc/self/smaps: %w", err)
	}
	for _, m := range list {
		// A page that differs from the file, as that of a relocated address does, is anonymous, and would be lost.
		if m.file != file || m.anonymous != 0 || m.resident == 0 || (m.rights != "r-xp" && m.rights != "r--p") {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return bytes, fmt.Errorf("pages: release %s: %w", file, errno)
		}
		bytes += m.resident
	}
	return bytes, nil
}

// mapping is an entry of smaps.
type mapping struct {
	from, to            uintptr
	rights, file        string
	resident, anonymous int64 // bytes
}

func mappings(smaps io.Reader) (out []mapping, err error) {
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		if strings.HasSuffix(name, ":") {
			if len(out) == 0 {
				continue
			}
			switch m := &out[len(out)-1]; name {
			case "Rss:":
				m.resident, err = kib(rest)
			case "Anonymous:":
				m.anonymous, err = kib(rest)
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		from, to, _ := strings.Cut(name, "-")
		var m mapping
		for text, p := range map[string]*uintptr{from: &m.from, to: &m.to} {
			n, err := strconv.ParseUint(text, 16, 8*int(unsafe.Sizeof(m.from)))
			if err != nil {
				return nil, err
			}
			*p = uintptr(n)
		}
		// rights, offset, device, inode, name
		for range 4 {
			var field string
			field, rest, _ = strings.Cut(rest, " ")
			if m.rights == "" {
				m.rights = field
			}
		}
		m.file = strings.TrimLeft(rest, " ")
		out = append(out, m)
	}
	return out, lines.Err()
}

// kib is the bytes of a number such as "12 kB".
func kib(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
	return n << 10, err
}
