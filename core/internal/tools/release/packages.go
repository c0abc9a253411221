package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/apk"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// The scripts of a package. Nothing is started: the service is the choice of the administrator.
const (
	reload = "#!/bin/sh\nif [ -z \"$DPKG_ROOT\" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n"
	stop   = `#!/bin/sh
case "$1" in
remove|0) if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then systemctl disable --now earshot.service || true; fi ;;
esac
`
)

// packages writes those of the distributions, in these formats.
func (r release) packages(p platform, list []file, formats ...string) error {
	work, err := os.MkdirTemp("", "earshot-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	scripts := nfpm.Scripts{PostInstall: filepath.Join(work, "reload"), PreRemove: filepath.Join(work, "stop"), PostRemove: filepath.Join(work, "reload")}
	for path, text := range map[string]string{scripts.PostInstall: reload, scripts.PreRemove: stop} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			return err
		}
	}
	packagers := map[string]nfpm.Packager{"deb": deb.Default, "rpm": rpm.DefaultRPM, "apk": apk.Default}
	for _, format := range formats {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "earshot", Arch: p.arch, Platform: "linux", Version: r.version, Section: "net", Priority: "optional",
			Maintainer: "The Earshot authors <maintainers@earshot.dev>", Homepage: "https://github.com/earshot-dev/earshot", License: "Apache-2.0",
			Description: "Observability sidecar for AI agents\nReads the traffic of AI agents and emits OpenTelemetry spans and ClickHouse tables,\nwith pages over them: earshot up.",
			MTime:       r.time,
			Overridables: nfpm.Overridables{
				Scripts: scripts,
				RPM:     nfpm.RPM{Group: "Applications/Internet", BuildHost: "earshot", Summary: "Observability sidecar for AI agents"},
			},
		})
		if format == "apk" { // has no systemd
			info.Scripts = nfpm.Scripts{}
		}
		for _, f := range list {
			if f.system && format == "apk" && !f.config {
				continue
			}
			content := &files.Content{Source: f.source, Destination: "/" + f.path, FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: r.time, Owner: "root", Group: "root"}}
			if f.config {
				content.Type = files.TypeConfigNoReplace
			}
			info.Contents = append(info.Contents, content)
		}
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
		if err := r.write(r.name(p)+"."+format, func(w io.Writer) error { return packagers[format].Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}
