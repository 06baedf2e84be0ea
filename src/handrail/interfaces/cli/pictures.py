"""Pictures that the user drops on the terminal or pastes, each behind the mention that stands for it."""

from handrail.interfaces.cli.pasting import dropped_file
from handrail.protocol.errors import UsageProblem
from handrail.protocol.values import AttachedImage
from handrail.tools.user_images import UserImages


class Pictures:
    def __init__(self, images: UserImages) -> None:
        self._images = images
        self._named: dict[str, AttachedImage] = {}

    def dropped(self, text: str) -> str:
        """A picture that was dropped becomes a mention, wherever it is: the user named it."""
        file = dropped_file(text)
        if file is None:
            return text
        try:
            image = self._images.named(file)
        except UsageProblem:
            return text
        return self._mention(image)

    async def pasted(self) -> str:
        """The mention of the picture in the clipboard; empty where there is none."""
        image = await self._images.in_clipboard()
        return self._mention(image) if image else ""

    def mentioned(self, text: str) -> tuple[AttachedImage, ...]:
        return tuple(image for mention, image in self._named.items() if mention in text)

    def _mention(self, image: AttachedImage) -> str:
        mention = f'@"{image.name}"'
        self._named[mention] = image
        return f"{mention} "
