package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// database is a store over HTTP.
type database struct {
	socket string
	client http.Client
}

// ask runs a query as a user and returns the rows, in tab separated lines.
func (d *database) ask(ctx context.Context, user, sql string) (string, error) {
	v := url.Values{"user": {user}, "database": {"earshot"}, "default_format": {"TSV"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://store/?"+v.Encode(), strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	answer, err := d.client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s\n%s", strings.TrimSpace(string(b)), sql)
	}
	return string(b), nil
}

func (d *database) exec(ctx context.Context, sql string) error {
	_, err := d.ask(ctx, "default", sql)
	return err
}

// scan reads the values of one line.
func (d *database) scan(ctx context.Context, sql string, into ...any) error {
	out, err := d.ask(ctx, "reader", sql)
	if err != nil {
		return err
	}
	_, err = fmt.Sscan(out, into...)
	return err
}

// cpu is the CPU time of the store's process so far; 0 where it is unknown.
func cpu(pid string) time.Duration {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	var user, system int64
	if _, err := fmt.Sscan(f[11]+" "+f[12], &user, &system); err != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond // ticks of USER_HZ, which is 100
}

// storeProcess finds the store that serves a data directory.
func storeProcess(dir string) string {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	for _, e := range all {
		b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		name, args, _ := strings.Cut(string(b), "\x00")
		if err == nil && strings.HasSuffix(name, "earshot-store") && strings.Contains(args, dir+"/") {
			return e.Name()
		}
	}
	return ""
}
