# The gateway in an image with nothing else. `make console` before it puts GraphiQL into the page.
#
#   docker build --build-arg VERSION=v1.0.0 -t sluice .
#   docker run --rm sluice version
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X github.com/sluicegw/sluice/cmd/sluice/version.release=${VERSION}" -o /out/sluice ./cmd/sluice
RUN mkdir -p /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/sluice /usr/bin/sluice
COPY --from=build --chown=65532:65532 /out/data /var/lib/sluice
COPY LICENSE /LICENSE
USER 65532:65532
# The embedded store is in sluice-data there.
WORKDIR /var/lib/sluice
VOLUME /var/lib/sluice
EXPOSE 8080
ENTRYPOINT ["/usr/bin/sluice"]
CMD ["serve"]
