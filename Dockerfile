# Two images:
#
#   docker build --target earshot -t earshot .             the sidecar alone, for a ClickHouse of your own
#   docker build --target earshot-store -t earshot-store . the same with the embedded store
#
# GO_IMAGE, IMAGE and STORE_IMAGE are the images that they are made from, for all platforms. `docker buildx imagetools inspect golang:1.26-bookworm`
# prints the digest of a newer one: --build-arg GO_IMAGE=golang@sha256:…

ARG GO_IMAGE=golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d
ARG IMAGE=gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab
ARG STORE_IMAGE=gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/earshot ./cmd/earshot \
 && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/earshot-store ./cmd/earshot-store \
 && mkdir -m 0700 /out/data

# The engine's library is fetched with npm and checked against its pinned hash.
FROM build AS engine
RUN apt-get update && apt-get install -y --no-install-recommends npm && rm -rf /var/lib/apt/lists/*
ENV XDG_CACHE_HOME=/cache
RUN go run ./cmd/earshot-store --fetch

FROM ${IMAGE} AS earshot
COPY --from=build /out/earshot /usr/local/bin/earshot
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/earshot"]
CMD ["run", "-c", "/etc/earshot/earshot.yaml"]

# The engine is a glibc build.
FROM ${STORE_IMAGE} AS earshot-store
COPY --from=build /out/earshot /out/earshot-store /usr/local/bin/
COPY --from=engine /cache /cache
COPY --from=build --chown=65532:65532 /out/data /data
ENV XDG_CACHE_HOME=/cache
USER 65532:65532
VOLUME /data
EXPOSE 9464
ENTRYPOINT ["/usr/local/bin/earshot"]
CMD ["run", "-c", "/etc/earshot/earshot.yaml"]
