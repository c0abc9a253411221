package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

func (r release) name(p platform) string {
	return fmt.Sprintf("earshot_%s_%s_%s", r.version, p.os, p.arch)
}

// archive writes a tar.gz, or a zip for Windows, with all files in one folder.
func (r release) archive(p platform, files []file) error {
	files = slices.DeleteFunc(files, func(f file) bool {
		return f.system || p.os == "windows" && strings.HasPrefix(f.path, share) && !strings.HasPrefix(f.path, doc)
	})
	for i := range files {
		files[i].path = r.name(p) + "/" + files[i].flat()
	}
	if p.os == "windows" {
		return r.zip(r.name(p)+".zip", files)
	}
	return r.tar(r.name(p)+".tar.gz", files)
}

func (r release) tar(name string, files []file) error {
	return r.write(name, func(w io.Writer) error {
		zw := gzip.NewWriter(w)
		tw := tar.NewWriter(zw)
		for _, f := range sorted(files) {
			err := copyInto(f, func(size int64) (io.Writer, error) {
				return tw, tw.WriteHeader(&tar.Header{Name: f.path, Mode: int64(f.mode), Size: size, ModTime: r.time, Typeflag: tar.TypeReg, Format: tar.FormatPAX})
			})
			if err != nil {
				return err
			}
		}
		return errors.Join(tw.Close(), zw.Close())
	})
}

func (r release) zip(name string, files []file) error {
	return r.write(name, func(w io.Writer) error {
		zw := zip.NewWriter(w)
		for _, f := range sorted(files) {
			err := copyInto(f, func(int64) (io.Writer, error) {
				h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: r.time}
				h.SetMode(f.mode)
				return zw.CreateHeader(h)
			})
			if err != nil {
				return err
			}
		}
		return zw.Close()
	})
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.path, b.path) })
}

func copyInto(f file, begin func(size int64) (io.Writer, error)) error {
	in, err := os.Open(f.source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	w, err := begin(info.Size())
	if err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

// write makes a file of the release.
func (r release) write(name string, content func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	if err := errors.Join(content(f), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// dockerfile is that of the images' context: the binaries of the release, unchanged. Without an engine
// the second image fetches it into its volume.
const dockerfile = `# docker buildx build --platform linux/amd64,linux/arm64 --target earshot -t earshot - < %[1]s
#
# earshot needs a ClickHouse of yours; earshot-store has the embedded one, whose engine it fetches into
# /data at the first start. IMAGE and STORE_IMAGE are the images that they are made from: those of a
# newer version are build arguments.
ARG IMAGE=gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
ARG STORE_IMAGE=gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f

FROM ${IMAGE} AS earshot
ARG TARGETARCH
COPY linux/${TARGETARCH}/earshot /usr/local/bin/
COPY --chown=65532:65532 --chmod=0700 data /data
USER 65532:65532
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/earshot"]
CMD ["run", "-c", "/etc/earshot/earshot.yaml"]

# The engine is a glibc build.
FROM ${STORE_IMAGE} AS earshot-store
ARG TARGETARCH
COPY linux/${TARGETARCH}/earshot linux/${TARGETARCH}/earshot-store /usr/local/bin/
COPY --chown=65532:65532 --chmod=0700 data /data
ENV EARSHOT_ENGINE_DIR=/data/engine
USER 65532:65532
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/earshot"]
CMD ["run", "-c", "/etc/earshot/earshot.yaml"]
`

// images writes the build context of the images: a tar that docker build reads.
func (r release) images(binaries map[string][]file) error {
	if len(binaries) == 0 {
		return nil
	}
	work, err := os.MkdirTemp("", "earshot-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	name := fmt.Sprintf("earshot_%s_oci.tar.gz", r.version)
	docker, keep := filepath.Join(work, "Dockerfile"), filepath.Join(work, ".keep")
	if err := errors.Join(os.WriteFile(docker, fmt.Appendf(nil, dockerfile, name), 0o644), os.WriteFile(keep, nil, 0o644)); err != nil {
		return err
	}
	files := []file{{path: "Dockerfile", source: docker, mode: 0o644}, {path: "data/.keep", source: keep, mode: 0o644}}
	for arch, list := range binaries {
		for _, f := range list {
			f.path = "linux/" + arch + "/" + filepath.Base(f.path)
			files = append(files, f)
		}
	}
	return r.tar(name, files)
}

// sbom writes the list of modules in the binaries, and fails when NOTICE is not that list's.
func (r release) sbom(ctx context.Context) error {
	notice := filepath.Join(r.out, "NOTICE")
	if _, err := command(ctx, nil, "go", "run", "./bench/cmd/sbom", notice, filepath.Join(r.out, fmt.Sprintf("earshot_%s.cdx.json", r.version))); err != nil {
		return err
	}
	got, err := os.ReadFile("NOTICE")
	want, err2 := os.ReadFile(notice)
	if err := errors.Join(err, err2, os.Remove(notice)); err != nil {
		return err
	}
	if string(got) != string(want) {
		return errors.New("NOTICE is not that of the modules of the build: run make sbom")
	}
	return nil
}

var formula = template.Must(template.New("formula").Parse(`class Earshot < Formula
  desc "Observability sidecar for AI agents"
  homepage "https://github.com/earshot-dev/earshot"
  version "{{.Version}}"
  license "Apache-2.0"
{{range .Systems}}
  on_{{.Name}} do
{{- range .Archives}}
    on_{{.CPU}} do
      url "https://github.com/earshot-dev/earshot/releases/download/{{$.Tag}}/{{.File}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "bin/earshot", "bin/earshot-store"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install "share/bash-completion/completions/earshot"
    zsh_completion.install "share/zsh/site-functions/_earshot"
    fish_completion.install "share/fish/vendor_completions.d/earshot.fish"
    doc.install "NOTICE", "config.example.yaml"
  end

  service do
    run [opt_bin/"earshot", "up", "--no-open"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/earshot version")
  end
end
`))

// formula writes that of Homebrew, for the archives that are there.
func (r release) formula() error {
	type archive struct{ CPU, File, Sum string }
	type system struct {
		Name     string
		Archives []archive
	}
	var systems []system
	for _, s := range [][2]string{{"darwin", "macos"}, {"linux", "linux"}} {
		list := system{Name: s[1]}
		for _, cpu := range [][2]string{{"arm64", "arm"}, {"amd64", "intel"}} {
			name := r.name(platform{s[0], cpu[0]}) + ".tar.gz"
			sum, err := digest(filepath.Join(r.out, name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			list.Archives = append(list.Archives, archive{cpu[1], name, sum})
		}
		if len(list.Archives) > 0 {
			systems = append(systems, list)
		}
	}
	return r.write("earshot.rb", func(w io.Writer) error {
		return formula.Execute(w, map[string]any{"Version": r.version, "Tag": r.tag, "Systems": systems})
	})
}

// checksums writes the SHA-256 of each file, in the format of sha256sum.
func (r release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		if e.Name() == marker {
			continue
		}
		sum, err := digest(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
	}
	fmt.Print(text.String())
	return os.WriteFile(filepath.Join(r.out, marker), []byte(text.String()), 0o644)
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
