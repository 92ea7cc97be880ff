"""The fonts of each split. A missing font is an error that names the package, never another font instead."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import ImageFont

from benchmarks.generator.truth import Split
from docferry.errors import ConfigurationError

DEBIAN_FONTS = Path("/usr/share/fonts")


class Face(enum.Enum):
    """What a font is used for."""

    MONO = "mono"
    BITMAP = "bitmap"
    SANS = "sans"
    SERIF = "serif"
    CHINESE = "chinese"


@dataclass(frozen=True, slots=True)
class Font:
    """A font file: its package, its path below the fonts folder, and its bold partner's path if there is one."""

    package: str
    file: str
    bold: str = ""

    def path(self, *, bold: bool = False) -> Path:
        """Where the file lies.

        Raises:
            ConfigurationError: It is not installed.
        """
        name = self.bold if bold and self.bold else self.file
        if self.package.startswith("fonts-"):
            path, remedy = DEBIAN_FONTS / name, f"apt-get install {self.package}"
        else:
            spec = find_spec(self.package)
            path = Path(spec.origin).parent / name if spec and spec.origin else Path(name)
            remedy = f"pip install {self.package.replace('_', '-')}"
        if not path.is_file():
            raise ConfigurationError(f"the generator's font {name} is missing", remedy=remedy, path=str(path))
        return path


def _debian(package: str, folder: str, regular: str, bold: str = "") -> Font:
    return Font(f"fonts-{package}", f"{folder}/{regular}", f"{folder}/{bold}" if bold else "")


FONTS: dict[Split, dict[Face, tuple[Font, ...]]] = {
    Split.TRAIN: {
        Face.MONO: (
            _debian("liberation2", "truetype/liberation2", "LiberationMono-Regular.ttf", "LiberationMono-Bold.ttf"),
            _debian("anonymous-pro", "truetype/anonymous-pro", "Anonymous Pro.ttf", "Anonymous Pro B.ttf"),
            _debian("inconsolata", "truetype/inconsolata", "Inconsolata.otf"),
        ),
        Face.BITMAP: (_debian("spleen", "opentype/spleen", "spleen-12x24.otf"),),
        Face.SANS: (
            _debian("liberation2", "truetype/liberation2", "LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"),
            _debian("lato", "truetype/lato", "Lato-Medium.ttf", "Lato-Bold.ttf"),
        ),
        Face.SERIF: (
            _debian("liberation2", "truetype/liberation2", "LiberationSerif-Regular.ttf", "LiberationSerif-Bold.ttf"),
        ),
        Face.CHINESE: (Font("pylopdf_fonts_zh_cn", "NotoSansSC-Regular.otf"),),
    },
    Split.CALIBRATE: {
        Face.MONO: (
            _debian("noto-mono", "truetype/noto", "NotoSansMono-Regular.ttf", "NotoSansMono-Bold.ttf"),
            _debian("courier-prime", "opentype/courier-prime", "Courier Prime Code.otf"),
            _debian("firacode", "truetype/firacode", "FiraCode-Regular.ttf", "FiraCode-Bold.ttf"),
        ),
        Face.BITMAP: (_debian("3270", "truetype/3270", "3270-Regular.ttf"),),
        Face.SANS: (
            _debian("open-sans", "truetype/open-sans", "OpenSans-Regular.ttf", "OpenSans-Bold.ttf"),
            _debian("cabin", "opentype/cabin", "Cabin-Regular.otf", "Cabin-Bold.otf"),
        ),
        Face.SERIF: (_debian("crosextra-caladea", "truetype/crosextra", "Caladea-Regular.ttf", "Caladea-Bold.ttf"),),
        Face.CHINESE: (_debian("wqy-microhei", "truetype/wqy", "wqy-microhei.ttc"),),
    },
    Split.JUDGE: {
        Face.MONO: (
            _debian("dejavu-core", "truetype/dejavu", "DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf"),
            _debian("mononoki", "truetype/mononoki", "mononoki-Regular.ttf", "mononoki-Bold.ttf"),
            _debian("agave", "truetype/agave", "agave-r-autohinted.ttf", "agave-b-autohinted.ttf"),
        ),
        Face.BITMAP: (_debian("terminus", "truetype/terminus", "TerminusTTF-4.46.0.ttf"),),
        Face.SANS: (
            _debian("dejavu-core", "truetype/dejavu", "DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
            _debian("karla", "truetype/karla", "Karla-Regular.otf", "Karla-Bold.otf"),
        ),
        Face.SERIF: (_debian("dejavu-core", "truetype/dejavu", "DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf"),),
        Face.CHINESE: (Font("pylopdf_fonts_zh_cn", "NotoSerifSC-Regular.otf"),),
    },
}


@lru_cache(maxsize=256)
def load(path: Path, size: int) -> ImageFont.FreeTypeFont:
    """The font at `size` pixels per em; the basic layout engine, so that Raqm's presence changes nothing."""
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


def fingerprints(split: Split) -> dict[str, str]:
    """Name and first 16 hex digits of the sha256 of every font file of a split: why two machines may differ."""
    paths = {font.path(bold=bold) for fonts in FONTS[split].values() for font in fonts for bold in (False, True)}
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in sorted(paths)}
